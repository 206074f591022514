#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Packs what a build made into one archive that runs wherever its PyTorch is, without installing anything: unpack it, put its
# folder on PYTHONPATH, and `import torch` finds device flagos; flagosd and flagosctl lie in flagos/native/bin.
#   scripts/bundle.sh BUILD_FOLDER ARCHIVE.tar.gz
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# = 2 ] || { sed -n '4,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
readonly build=$1 archive=$2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r python/flagos python/flagos_programs "$folder"
rm -rf "$folder/flagos/native"
find "$folder" -name __pycache__ -prune -exec rm -rf {} +
cmake --install "$build" --prefix "$folder/flagos/native" --component flagos --strip >/dev/null

# What pip would have written: import torch looks for the entry point.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
info=$folder/flagos-$version.dist-info
mkdir "$info"
printf 'Metadata-Version: 2.1\nName: flagos\nVersion: %s\n' "$version" >"$info/METADATA"
printf '[torch.backends]\nflagos = flagos:_autoload\n' >"$info/entry_points.txt"
mkdir -p "$(dirname "$archive")"
tar -C "$folder" -czf "$archive" .
echo "bundle: $archive, $(du -h "$archive" | cut -f1), for torch $(cat "$build/lib/libflagos_client.torch")"
