#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs in the booted node: the cases that /trial/cases names, a result for each in /trial/results, what they printed beside it.
set -u
cases=$(dirname "${BASH_SOURCE[0]}")/cases
# The runtime is the checkout's PyTorch, and needs no network.
flagosctl runtime install cpu --from "$CHECKOUT/.venv" >/trial/runtime.log 2>&1
systemctl restart flagosd.service
while read -r name; do
  began=$SECONDS
  if timeout 300 bash -c "set -euo pipefail; source '$cases/lib.sh'; source '$cases/$name.sh'" </dev/null >"/trial/$name.log" 2>&1; then
    verdict=ok
  else
    verdict=FAILED
  fi
  printf '%-7s %-20s %4d s\n' "$verdict" "$name" $((SECONDS - began)) >>/trial/results.new
done </trial/cases
journalctl --no-pager -u flagosd -u 'flagos-executor-*' >/trial/journal 2>&1
mv /trial/results.new /trial/results
