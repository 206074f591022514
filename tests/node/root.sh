#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the folder of a fresh Debian 12 with systemd, which is made once (40 s, needs the network). As root; installs debootstrap
# and systemd-container where they are not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly packages=systemd,systemd-sysv,dbus,python3,runc,procps,libgomp1
readonly root=$PWD/.cache/node-root
[ "$(id -u)" = 0 ] || { echo "node: a Debian of its own can only be made by root" >&2; exit 2; }
if ! command -v debootstrap >/dev/null || ! command -v systemd-nspawn >/dev/null; then
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap systemd-container >&2
fi
if [ "$(cat "$root.packages" 2>/dev/null)" != "$packages" ]; then
  rm -rf "$root"
  mkdir -p .cache
  echo "node: making a Debian 12 in .cache/node-root" >&2
  debootstrap --variant=minbase --include="$packages" bookworm "$root" >"$root.log" || { tail -3 "$root.log" >&2; exit 2; }
  echo "$packages" >"$root.packages"
fi
echo "$root"
