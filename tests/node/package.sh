#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian package in a Debian 12 of its own, upgrades it over itself, removes and purges it; as root, with
# debootstrap and systemd-container. The units are verified, and started where the machine lets systemd-nspawn boot.
#   tests/node/package.sh PACKAGE.deb [ROOT]   ROOT: a fresh Debian 12 from debootstrap; without it one is made
#   TORCH_WHEEL=FILE  a wheel of torch for the CPU: the executors of the booted flagosd must start with it
#   BOOT=off          does not boot
set -euo pipefail
readonly deb=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
readonly node=$scratch/node
if [ $# = 2 ]; then
  cp -a "$2" "$node"
else
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus bookworm "$node" >/dev/null
fi

die() { echo "package: failed: $*" >&2; exit 1; }
inside() { chroot "$node" env LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
expect() { inside test "$@" || die "test $*"; }

cp "$deb" "$node/flagos.deb"

inside dpkg -i /flagos.deb
inside flagosd --version
inside flagosd --check-config --config /etc/flagos/flagosd.toml
inside flagosctl runtime list
inside getent group flagos
expect -L /etc/systemd/system/sockets.target.wants/flagosd.socket
[ "$(stat -c '%U %a' "$node/var/lib/flagos/runtimes")" = "root 755" ] || die "the folder of the runtimes is not root's"
inside systemd-analyze --man=no verify flagosd.service flagosd.socket flagosd-executors.socket flagosd-containers.socket flagos-sessions.slice 2>"$scratch/verify" || die "units: $(cat "$scratch/verify")"
! grep -i flagos "$scratch/verify" || die "systemd-analyze verify complains"
inside bash -c 'source /usr/share/bash-completion/completions/flagosctl; COMP_WORDS=(flagosctl runtime ""); COMP_CWORD=2
  _flagosctl flagosctl ""; [[ " ${COMPREPLY[*]} " == *" install "* ]]' || die "bash completion"

echo "# changed here" >>"$node/etc/flagos/flagosd.toml"
inside dpkg -i /flagos.deb
grep -q "changed here" "$node/etc/flagos/flagosd.toml" || die "an upgrade lost the configuration"

if [ -n "${TORCH_WHEEL:-}" ]; then
  cp "$TORCH_WHEEL" "$node/"
  inside flagosctl runtime install cpu --version "$(basename "$TORCH_WHEEL" | cut -d- -f2)" --from "/$(basename "$TORCH_WHEEL")" >/dev/null
  rm "$node/$(basename "$TORCH_WHEEL")"
fi
if [ "${BOOT:-on}" = on ] && command -v systemd-nspawn >/dev/null; then
  cat >"$node/etc/systemd/system/trial.service" <<'UNIT'
[Unit]
After=flagosd.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'exec >/trial 2>&1; set -x; systemctl is-active flagosd.socket flagosd.service; flagosctl version; \
  a=$(systemctl show -p MainPID flagosd); dpkg -i /flagos.deb; b=$(systemctl show -p MainPID flagosd); \
  [ "$a" != "$b" ] && echo restarted; flagosctl device list; \
  flagosctl audit verify; flagosctl audit search --fields verb; systemctl is-active flagosd.service; journalctl -u flagosd --no-pager | tail -20'
ExecStartPost=/bin/systemctl poweroff
[Install]
WantedBy=multi-user.target
UNIT
  inside systemctl enable trial.service 2>/dev/null
  SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 timeout 120 systemd-nspawn -q -D "$node" --boot --register=no --keep-unit </dev/null >"$scratch/boot" 2>&1 || true
  [ -f "$node/trial" ] || die "it did not boot: $(tail -5 "$scratch/boot")"
  cat "$node/trial"
  [ "$(grep -cx active "$node/trial")" = 3 ] || die "flagosd is not active"
  grep -q "^ok: records 1 to" "$node/trial" || die "the audit log does not verify"
  [ "$(grep -c "daemon.start" "$node/trial")" = 2 ] || die "the audit log has not both starts"
  grep -qx restarted "$node/trial" || die "an upgrade did not restart flagosd"
  if [ -n "${TORCH_WHEEL:-}" ]; then
    grep -q "^ *0 .*HEALTHY" "$node/trial" || die "there is no device"
  else
    grep -q "flagosctl runtime install cpu" "$node/trial" || die "nobody says how to get a libtorch"
  fi
  inside systemctl disable trial.service 2>/dev/null
fi

inside dpkg -r flagos
expect -f /etc/flagos/flagosd.toml
expect ! -e /usr/bin/flagosd
expect -d /var/lib/flagos
inside dpkg -P flagos
for path in /etc/flagos /var/lib/flagos /var/log/flagos /usr/lib/flagos /etc/systemd/system/sockets.target.wants/flagosd.socket; do
  expect ! -e "$path"
done
echo "package: installed, upgraded, removed and purged"
