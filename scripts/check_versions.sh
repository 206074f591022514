#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles the sources of the vendor cuda, without making anything of them, against the headers of .venv's PyTorch too:
# `make cuda` builds them against another version. A PyTorch for the CPU brings CUDA's headers but for one that is
# generated, which is taken from the other.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
torch=$(.venv/bin/python -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')/include
readonly torch generated=c10/cuda/impl/cuda_cmake_macros.h built=.cache/cuda
[ -f "$torch/c10/cuda/CUDAStream.h" ] || { echo "check: $torch has no headers for CUDA: nothing to compile against"; exit 0; }

stub=$(mktemp -d)
trap 'rm -rf "$stub"' EXIT
if ! [ -f "$torch/$generated" ]; then
  mkdir -p "$stub/$(dirname "$generated")"
  cp "$built/torch/include/$generated" "$stub/$generated"
fi
runtime=$(echo "$built"/nvidia/cu*/include)
printf '%s\n' vendors/cuda/*.cc | xargs -P "${JOBS:-$(nproc)}" -I SOURCE g++ -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I. \
  -isystem "$torch" -isystem "$torch/torch/csrc/api/include" -isystem "$runtime" -isystem "$stub" SOURCE
echo "check: vendors/cuda compiles against PyTorch $(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$torch"/../version.py)"
