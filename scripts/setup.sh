#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what building, testing and running flagosd needs, once: the distribution's packages (with sudo where not
# root) and a virtual environment in .venv with PyTorch for the CPU. What is already there is not touched: each part
# leaves a stamp, a hash of what it was made from, and a second run only compares stamps.
#
#   PYTHON           the interpreter to make .venv from; default: the first python3 >= 3.11 on PATH
#   TORCH_INDEX_URL  package index to take torch from (PyTorch's index of CPU wheels, or a mirror of it);
#                    default: what pip is configured with
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly venv=.venv
readonly min_minor=11

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

hash_of() { { printf '%s\n' "$@"; cat "${hash_files[@]}"; } | sha256sum | cut -d' ' -f1; }

stamp_is() { [ "$(cat "$venv/.stamp-$1" 2>/dev/null)" = "$2" ]; }

set_stamp() { printf '%s\n' "$2" >"$venv/.stamp-$1"; }

# Names of a list file, one a line, without comments.
names_in() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1"; }

install_system_packages() {
  local list id version
  id=$(. /etc/os-release && echo "${ID:-unknown}")
  version=$(. /etc/os-release && echo "${VERSION_ID:-}")
  list=deploy/packages/$id-$version.txt
  if [ ! -f "$list" ]; then
    say "no package list for $id $version (not verified there): taking what is installed;" \
        "deploy/packages/debian-12.txt says what is needed"
    return
  fi

  local -a missing=()
  mapfile -t missing < <(comm -23 <(names_in "$list" | sort) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | sort -u))
  [ ${#missing[@]} -gt 0 ] || return 0

  local -a as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing and there is no sudo to install them with;" \
      "run as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} system packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq ||
    die "apt-get update failed (see above); check the network and /etc/apt/sources.list"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    -o Dpkg::Use-Pty=0 "${missing[@]}" || die "apt-get install failed (see above)"
}

# Prints the interpreter to use: $PYTHON where set, else the first that is new enough and can make environments.
find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13}; do
    "$candidate" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, $min_minor))" 2>/dev/null || continue
    echo "$candidate"
    return
  done
  die "no Python 3.$min_minor or later with venv among: ${PYTHON:-python3 python3.11 python3.12 python3.13};" \
    "install one (Debian 12: apt-get install python3 python3-venv) or name one: make setup PYTHON=/path/to/python3"
}

pip_install() {
  "$venv/bin/python" -m pip install --disable-pip-version-check --no-input -c requirements/constraints.txt "$@" ||
    die "pip install $* failed (see above); pip's own configuration applies, and TORCH_INDEX_URL names torch's index"
}

make_environment() {
  local python
  if ! "$venv/bin/python" -c '' 2>/dev/null; then
    python=$(find_python)
    say "creating $venv with $("$python" --version) ($(command -v "$python"))"
    rm -rf "$venv"
    "$python" -m venv "$venv" || die "$python -m venv $venv failed (see above)"
  fi

  # torch first and pinned: what comes later finds its requirement met and pulls no other build of it.
  local -a hash_files=(requirements/constraints.txt)
  local torch_hash all_hash
  torch_hash=$(hash_of "${TORCH_INDEX_URL:-}")
  if ! stamp_is torch "$torch_hash"; then
    say "installing torch into $venv${TORCH_INDEX_URL:+ from TORCH_INDEX_URL}"
    pip_install ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} torch
    set_stamp torch "$torch_hash"
  fi

  hash_files+=(requirements/dev.txt requirements/examples.txt)
  all_hash=$(hash_of "$torch_hash")
  if ! stamp_is packages "$all_hash"; then
    say "installing development and example packages into $venv"
    pip_install -r requirements/dev.txt -r requirements/examples.txt
    set_stamp packages "$all_hash"
  fi
}

install_system_packages
make_environment
say "everything is installed"
