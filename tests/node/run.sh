#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests the service where it is meant to run: boots a copy of a Debian 12 (root.sh) with systemd-nspawn, installs the package and a
# runtime there, and runs the cases of cases/ in it, one after the other. As root.
#   tests/node/run.sh PACKAGE.deb ROOT [CASE...]
# Programs of the cases use the checkout and its .venv, which the node sees read-only at the same path.
#   NODE_KEEP=1  leaves the node's folder, and says where
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$here/../.." && pwd)
readonly here checkout
readonly deb=$(realpath "$1") root=$2
shift 2
cases=("$@")
[ ${#cases[@]} -gt 0 ] || cases=($(cd "$here/cases" && ls ./*.sh | sed 's|^./||; s|\.sh$||' | grep -v '^lib$'))
scratch=$(mktemp -d)
readonly node=$scratch/node
finish() {
  if [ -n "${NODE_KEEP:-}" ]; then echo "node: left in $scratch"; else rm -rf "$scratch"; fi
}
trap finish EXIT
cp -a "$root" "$node"

inside() { chroot "$node" env LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
cp "$deb" "$node/flagos.deb"
inside dpkg -i /flagos.deb >"$scratch/dpkg.log" 2>&1 || { cat "$scratch/dpkg.log" >&2; exit 1; }
inside useradd --create-home --groups flagos alice
inside useradd --create-home --groups flagos bob
inside useradd --create-home mallory

mkdir -p "$node/trial"
printf '%s\n' "${cases[@]}" >"$node/trial/cases"
cat >"$node/etc/systemd/system/trial.service" <<UNIT
[Unit]
After=flagosd.service multi-user.target
[Service]
Type=oneshot
TimeoutStartSec=1200
Environment=CHECKOUT=$checkout
ExecStart=/bin/bash $here/inside.sh
ExecStopPost=/bin/systemctl --no-block poweroff
[Install]
WantedBy=default.target
UNIT
inside systemctl enable trial.service 2>/dev/null
SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 timeout 1500 systemd-nspawn -q -D "$node" --boot --register=no --keep-unit \
  --bind-ro="$checkout" --capability=all --system-call-filter='@known' </dev/null >"$scratch/boot.log" 2>&1 || true
[ -f "$node/trial/results" ] || { echo "node: it did not boot:"; tail -20 "$scratch/boot.log"; exit 1; }

cat "$node/trial/results"
failed=$(grep -c '^FAILED' "$node/trial/results" || true)
for case in $(sed -n 's/^FAILED *\([^ ]*\).*/\1/p' "$node/trial/results"); do
  echo "== $case"
  tail -60 "$node/trial/$case.log"
done
[ "$failed" = 0 ] || tail -40 "$node/trial/journal"
[ "$(wc -l <"$node/trial/results")" = "${#cases[@]}" ] || { echo "node: not every case has a result"; exit 1; }
[ "$failed" = 0 ]
