#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes .venv's Python use this checkout: the package in python/ and the programs and libraries in build/. Does nothing
# where it already does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The package finds its native parts in flagos/native: a folder in a wheel, the build tree here.
[ "$(readlink python/flagos/native)" = ../../build ] || ln -sfn ../../build python/flagos/native

stamp=.venv/.stamp-develop
state=$({ pwd; cat pyproject.toml; } | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" = "$state" ] &&
  grep -qs '"editable": *true' .venv/lib/python3.*/site-packages/flagos-*.dist-info/direct_url.json; then
  exit 0
fi
echo "develop: installing the package flagos into .venv, as a link to this checkout"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --config-settings wheel.cmake=false --config-settings editable.mode=inplace --editable .
echo "$state" >"$stamp"
