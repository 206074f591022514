#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Packs what a build made as dist/flagos_VERSION_ARCH.deb, for Debian 12: programs and vendors in /usr/lib/flagos, where they
# find each other, and links to them in /usr/bin. With dpkg-deb: CPack would pack the wheel's layout, for which the install
# rules are written, and looks for a package that owns libtorch.
#   scripts/package.sh [BUILD_FOLDER] [BUILD_FOLDER_OF_CUDA]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly build=${1:-build} cuda=${2:-build/cuda}
umask 022

version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
arch=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root" "$root.work"' EXIT
chmod 755 "$root"
readonly native=$root/usr/lib/flagos

cmake --install "$build" --prefix "$native" --strip >/dev/null
[ ! -d "$cuda/vendors/cuda" ] || cp -r "$cuda/vendors/cuda" "$native/vendors/"
rm -rf "$native/lib"  # the client comes with its Python package
# Executors load libtorch before a vendor; nothing is to be found by a path.
find "$native/vendors" -name '*.so' -exec patchelf --remove-rpath {} + -exec strip --strip-unneeded {} + -exec chmod 644 {} +
mkdir -p "$root/usr/bin"
ln -s ../lib/flagos/bin/flagosctl ../lib/flagos/bin/flagosd "$root/usr/bin/"

install -D -m 644 deploy/flagosd.toml "$root/etc/flagos/flagosd.toml"
# The units give flagosd a state folder, and a bus to start executors over.
sed -i -e 's|^#state = .*|state = "/run/flagosd"|' -e 's|^spawner = .*|spawner = "systemd"|' \
  -e 's|^#folder = |folder = |' -e 's|^#cdi = |cdi = |' "$root/etc/flagos/flagosd.toml"
mkdir -p "$root/etc/flagos/conf.d"
install -D -m 644 -t "$root/lib/systemd/system" deploy/systemd/*
install -D -m 644 deploy/debian/flagos.sysusers "$root/usr/lib/sysusers.d/flagos.conf"
install -D -m 644 deploy/debian/flagos.tmpfiles "$root/usr/lib/tmpfiles.d/flagos.conf"
install -D -m 644 -t "$root/usr/share/flagos/monitoring" deploy/monitoring/*
mkdir -p "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions"
"$native/bin/flagosctl" completion bash >"$root/usr/share/bash-completion/completions/flagosctl"
"$native/bin/flagosctl" completion zsh >"$root/usr/share/zsh/vendor-completions/_flagosctl"

python3 scripts/man.py "$native/bin" deploy/flagosd.toml "$root.work/man"
for page in "$root.work"/man/*; do
  install -D -m 644 "$page" "$root/usr/share/man/man${page##*.}/${page##*/}"
done
gzip -9n "$root"/usr/share/man/man*/*
# The distribution's archives are linked in so that the programs also run where its gRPC is not; maintainer scripts call
# systemctl because debhelper's would stop and start.
mkdir -p "$root/usr/share/lintian/overrides"
printf 'flagos: %s\n' 'embedded-library *' 'maintainer-script-calls-systemctl *' >"$root/usr/share/lintian/overrides/flagos"
doc=$root/usr/share/doc/flagos
mkdir -p "$doc"
printf 'Licence: Apache-2.0, whose text is in /usr/share/common-licenses/Apache-2.0\nCopyright 2026 the authors of flagosd\n' >"$doc/copyright"
printf 'flagos (%s) unstable; urgency=low\n\n  * Release.\n\n -- The flagosd project <flagosd@packages.invalid>  %s\n' \
  "$version" "$(LC_ALL=C date -u -R -d "@$(git log -1 --format=%ct 2>/dev/null || date +%s)")" | gzip -9n >"$doc/changelog.gz"

# Every library that the programs and vendors need, from the packages that own it; nobody owns libtorch.
mkdir -p "$root.work/debian" "$root/DEBIAN"
printf 'Source: flagos\n\nPackage: flagos\nArchitecture: any\n' >"$root.work/debian/control"
torch=$(.venv/bin/python -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')/lib
mapfile -t elves < <(find "$native" -type f \( -path '*/bin/*' -o -name '*.so' \) ! -path '*/vendors/cuda/*')
depends=$(cd "$root.work" && dpkg-shlibdeps -O --ignore-missing-info --warnings=0 -l"$torch" "${elves[@]}" 2> >(grep -v "can't extract name and version" >&2))
sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" -e "s/@SIZE@/$(du -sk "$root" | cut -f1)/" \
  -e "s/@DEPENDS@/${depends#shlibs:Depends=}/" deploy/debian/control.in >"$root/DEBIAN/control"
echo /etc/flagos/flagosd.toml >"$root/DEBIAN/conffiles"
install -m 755 -t "$root/DEBIAN" deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm
(cd "$root" && find . -type f ! -path './DEBIAN/*' ! -path './etc/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)

mkdir -p dist
deb=dist/flagos_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$root" "$deb" >/dev/null
echo "package: $deb, $(du -h "$deb" | cut -f1)"
