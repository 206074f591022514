#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every check of `make lint`; all run, and the names of those that failed are printed at the end.
#   JOBS      how many clang-tidy run at once (default: one a core)
#   TIDY=off  leaves clang-tidy out, which takes ten minutes of two cores where nothing was checked before
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly python=.venv/bin/python
failed=()

check() {
  local name=$1
  shift
  echo "== lint: $name"
  "$@" || failed+=("$name")
}

check_format() {
  git ls-files -z --cached --others --exclude-standard '*.h' '*.cc' | xargs -0r clang-format-14 --dry-run --Werror
}

run_tidy() {
  # clang-tidy reads the headers that protoc generates.
  cmake --build --preset release --target generated >/dev/null && "$python" scripts/tidy.py
}

check "licence headers, file length, versions" "$python" scripts/check_sources.py
check "clang-format" check_format
check "ruff" "$python" -m ruff check --quiet
check "ruff format" "$python" -m ruff format --check --quiet
check "mypy" "$python" -m mypy
[ "${TIDY:-on}" = off ] || check "clang-tidy" run_tidy

if [ ${#failed[@]} -gt 0 ]; then
  (IFS=,; echo "lint: failed: ${failed[*]}")
  exit 1
fi
echo "lint: clean"
