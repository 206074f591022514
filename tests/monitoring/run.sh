#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests deploy/monitoring with the distribution's Prometheus, which is unpacked into .cache where the machine has none: no
# service of it is started.
#   tests/monitoring/run.sh [PYTEST_ARGUMENT ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly folder=.cache/prometheus

if ! command -v promtool >/dev/null || ! command -v prometheus >/dev/null; then
  if [ ! -x "$folder/usr/bin/promtool" ]; then
    mkdir -p "$folder"
    (cd "$folder" && apt-get download -qq prometheus && dpkg -x prometheus_*.deb .) ||
      { echo "monitoring: there is no prometheus, and apt-get download prometheus failed (see above)" >&2; exit 1; }
  fi
  export PATH=$PWD/$folder/usr/bin:$PATH
fi
exec .venv/bin/python -m pytest tests/monitoring "$@"
