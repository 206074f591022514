# SPDX-License-Identifier: Apache-2.0
# What the cases share. Every check prints what it looks at; the first that fails ends the case.
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
python=/usr/bin/python3
packages=$(echo "$CHECKOUT"/.venv/lib/python3*/site-packages)

die() { echo "FAILED: $*"; exit 1; }
# as USER COMMAND...: a user's program, with the checkout's PyTorch.
as() {
  local user=$1
  shift
  runuser -u "$user" -- env PYTHONPATH="$CHECKOUT/tests/e2e:$CHECKOUT/python:$packages" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 "$@"
}
# await SECONDS COMMAND...: until it succeeds.
await() {
  local limit=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt "$limit" ] || die "waited in vain for: $*"
    sleep 0.05
  done
}
field() { "$python" -c 'import json,sys; d=json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }
sessions() { flagosctl ps -o json "$@"; }
