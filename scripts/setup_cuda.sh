#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks what the vendor cuda is built against (requirements/cuda.txt) into .cache/cuda, once: PyTorch's headers and
# libraries and the CUDA runtime, without a GPU, a driver or CUDA's compiler. Half a gigabyte is fetched, a gigabyte kept.
# A machine that has such a PyTorch installed needs none of it: -DFLAGOS_TORCH_ROOT=.../site-packages/torch.
#
#   TORCH_INDEX_URL_CUDA  package index to take these from; default: what pip is configured with
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly list=requirements/cuda.txt folder=.cache/cuda
wanted=$(cat "$list" scripts/setup_cuda.sh | sha256sum | cut -d' ' -f1)
[ "$(cat "$folder/.stamp" 2>/dev/null)" != "$wanted" ] || exit 0

echo "setup: fetching PyTorch for CUDA (0.5 GB) into $folder"
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
.venv/bin/python -m pip download --disable-pip-version-check --no-input --no-deps --only-binary :all: --quiet \
  ${TORCH_INDEX_URL_CUDA:+--index-url "$TORCH_INDEX_URL_CUDA"} -d "$wheels" -r "$list" || {
  echo "setup: error: pip download -r $list failed (see above); TORCH_INDEX_URL_CUDA names an index that has them" >&2
  exit 1
}
rm -rf "$folder"
mkdir -p "$folder"
for wheel in "$wheels"/*.whl; do
  .venv/bin/python - "$wheel" "$folder" <<'PYTHON'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    keep = ("torch/include/", "torch/lib/", "torch/version.py", "nvidia/")
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith(keep)])
PYTHON
  rm "$wheel"
done
echo "$wanted" >"$folder/.stamp"
