#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs the tests in stages, all of them whatever fails, and ends with a line for each.
#   scripts/test.sh [STAGE ...]   stages: release asan tsan fuzz pytest conformance; default: all
#   JOBS          parallel compilations and C++ tests (default: one a core)
#   FUZZ_SECONDS  how long each fuzzer runs (default: 5)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly jobs=${JOBS:-$(nproc)}
readonly fuzz_seconds=${FUZZ_SECONDS:-5}

# The C++ tests as built by a preset, whose build folder is the second argument.
run_ctest() {
  local preset=$1 folder=$2
  [ -f "$folder/build.ninja" ] || cmake --preset "$preset" || return
  cmake --build --preset "$preset" -- -j "$jobs" || return
  ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$jobs"
}

stage_release() { run_ctest release build; }
stage_asan() { run_ctest asan build/asan; }
stage_tsan() { run_ctest tsan build/tsan; }
stage_pytest() { .venv/bin/python -m pytest --durations=5; }
# A sample of `make conformance`, every sixteenth operator, and tests that share its settings.
stage_conformance() {
  .venv/bin/python -m pytest tests/conformance tests/issues tests/programs --numprocesses "$jobs" --quiet
}

stage_fuzz() {
  [ -f build/fuzz/build.ninja ] || cmake --preset fuzz || return
  cmake --build --preset fuzz -- -j "$jobs" || return
  tests/fuzz/smoke.sh build/fuzz "$fuzz_seconds"
}

stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(release asan tsan fuzz pytest conformance)
for stage in "${stages[@]}"; do
  declare -F "stage_$stage" >/dev/null ||
    { echo "test: unknown stage '$stage'; there are: release asan tsan fuzz pytest conformance" >&2; exit 2; }
done

# What each stage prints also goes to a log, whose result the summary repeats.
logs=build/test-logs
mkdir -p "$logs"
summary=()
failures=0
for stage in "${stages[@]}"; do
  echo "== test: $stage"
  began=$SECONDS
  if "stage_$stage" 2>&1 | tee "$logs/$stage.log"; then
    verdict=passed
  else
    verdict=FAILED
    failures=$((failures + 1))
  fi
  result=$(grep -E '^[0-9]+% tests passed|^=+ .*(passed|failed|error).* =+$|fuzzers found nothing' "$logs/$stage.log" | tail -1)
  summary+=("$(printf '%-8s %-7s %5d s  %s' "$stage" "$verdict" $((SECONDS - began)) "$(tr -d = <<<"$result")")")
done

echo "== summary (logs in $logs)"
printf '%s\n' "${summary[@]}"
[ "$failures" = 0 ]
