#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target for some seconds on its seeds: smoke.sh [BUILD_FOLDER] [SECONDS]. Fails where one finds a fault;
# the input that showed it is then in BUILD_FOLDER/findings.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$source/build/fuzz}
seconds=${2:-10}
findings=$build/findings
mkdir -p "$findings"
[ -d "$build/fuzzers" ] || { echo "smoke.sh: $build/fuzzers does not exist; run: cmake --preset fuzz && cmake --build --preset fuzz" >&2; exit 2; }

status=0
for target in "$build"/fuzzers/fuzz_*; do
  name=$(basename "$target")
  found=$(mktemp -d "$build/corpus-$name-XXXXXX")
  log=$findings/$name.log
  # New inputs go to the first folder; the seeds of the repository are only read.
  if "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 -verbosity=0 \
      -artifact_prefix="$findings/$name-" "$found" "$source/tests/fuzz/corpus/$name" >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "$name: ${runs:-0} inputs in ${seconds} s, no fault"
    rm -f "$log"
  else
    echo "$name: FAULT" >&2
    tail -40 "$log" >&2
    status=1
  fi
  rm -rf "$found"
done
[ "$status" -ne 0 ] || echo "$(ls "$build"/fuzzers/fuzz_* | wc -l) fuzzers found nothing"
exit $status
