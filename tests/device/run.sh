#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything that only a machine with a GPU can show, in one command, with nothing installed there but a PyTorch for
# CUDA: unpacks the bundle, starts flagosd with the vendor cuda, and runs the stages that are named.
#   tests/device/run.sh BUNDLE.tar.gz REPORT_FOLDER STAGE...
# Stages: smoke faults refusals memory parity telemetry share bench; see the files STAGE.py beside this one. The last lines are a summary.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bundle=$1
report=$2
shift 2
work=$(mktemp -d)
mkdir -p "$report"
tar -C "$work" -xzf "$bundle" || exit 1
export PYTHONPATH=$work PYTHONUNBUFFERED=1
native=$work/flagos/native
libtorch=$(TORCH_DEVICE_BACKEND_AUTOLOAD=0 python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')/lib

"$native/bin/flagosd" --socket "$work/flagosd.sock" --vendor cuda --libtorch "$libtorch" --warm 1 \
  >"$report/flagosd.log" 2>&1 &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait $daemon 2>/dev/null; rm -rf "$work"' EXIT
export FLAGOS_ENDPOINT=unix://$work/flagosd.sock FLAGOSCTL=$native/bin/flagosctl
for _ in $(seq 1 120); do
  [ -S "$work/flagosd.sock" ] && break
  kill -0 $daemon 2>/dev/null || break
  sleep 0.5
done
if ! [ -S "$work/flagosd.sock" ]; then
  echo "flagosd did not start:"; tail -5 "$report/flagosd.log"
  exit 1
fi

summary=()
failures=0
for stage in "$@"; do
  echo "== device: $stage"
  began=$SECONDS
  if timeout "${STAGE_SECONDS:-400}" python3 "$here/$stage.py" --report "$report" 2>&1 | tee "$report/$stage.log"; then
    verdict=passed
  else
    verdict=FAILED
    failures=$((failures + 1))
  fi
  summary+=("$(printf '%-8s %-7s %4d s' "$stage" "$verdict" $((SECONDS - began)))")
done
"$FLAGOSCTL" ps --all -o json >"$report/sessions.json" 2>&1
echo "== summary"
printf '%s\n' "${summary[@]}"
[ "$failures" = 0 ] || tail -15 "$report/flagosd.log" | cut -c1-400
exit "$failures"
