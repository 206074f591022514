# SPDX-License-Identifier: Apache-2.0
# A container's whole contract is one mounted folder: a job in it trains, as somebody that the host does not know, and a token serves
# one container only.
await 30 sh -c 'flagosctl device list | grep -q HEALTHY'
program='
import torch
from support.training import train
ours, cpu = train("flagos", 12), train("cpu", 12)
torch.testing.assert_close(torch.tensor(ours), torch.tensor(cpu), rtol=1e-4, atol=1e-5)
import os; print("trained as", os.getuid(), "on", torch.flagos.session_info()["session"] if isinstance(torch.flagos.session_info(), dict) else "flagos")
'
open_lease() { runuser -u "$1" -- flagosctl lease open --name "$2" -o json; }
here=$CHECKOUT/tests/node/cases
bundle() { rm -rf "/tmp/$1"; mkdir -p "/tmp/$1"; "$python" "$here/bundle.py" "/tmp/$1" "${@:2}"; chmod -R go+rX "/tmp/$1"; }

lease=$(open_lease alice batch)
folder=$(field 'd["folder"]' <<<"$lease")
token=$(field 'd["token"]' <<<"$lease")
name=$(field 'd["lease"]' <<<"$lease")
stat -c '%A %U %n' "$folder" "$folder"/*
[ "$(ls "$folder")" = $'flagosd.sock\ntoken' ] || die "the folder holds more: $(ls "$folder")"
runuser -u alice -- ls "$folder" >/dev/null || die "its user may not mount it"
! runuser -u bob -- ls "$folder" 2>/dev/null || die "another user may look into it"

bundle one "$program" "$folder"
runc run --bundle /tmp/one one
sessions --all | field '[(s["id"], s["owner"], s["origin"].split(":")[0], s["container"], s["end_cause"]) for s in d["items"]][-1:]'
[ "$(sessions --all | field 'd["items"][-1]["owner"]')" = alice ] || die "the session is not the lease's user's"
[ "$(sessions --all | field 'd["items"][-1]["lease"]')" = "$name" ] || die "the session is not the lease's"

# The same token elsewhere: another container, and a process of the host that has read it.
bundle two "$program" "$folder"
if runc run --bundle /tmp/two two 2>/tmp/refused; then die "a token served two containers"; fi
tail -1 /tmp/refused
grep -q "another container's" /tmp/refused || die "not told why"
if as mallory env FLAGOS_ENDPOINT=unix:///run/flagos/containers/flagosd.sock FLAGOS_TOKEN="$token" \
  "$python" -c 'import torch; torch.ones(1, device="flagos")' 2>/tmp/refused; then die "mallory used alice's token"; fi
grep -q "another container's" /tmp/refused || die "mallory is not told why: $(tail -1 /tmp/refused)"
# No token, a made-up one, and one that has ended.
for value in "" "$(printf '%064d' 7)"; do
  if as mallory env FLAGOS_ENDPOINT=unix:///run/flagos/containers/flagosd.sock FLAGOS_TOKEN="$value" \
    "$python" -c 'import torch; torch.ones(1, device="flagos")' 2>/tmp/refused; then die "a token of \"$value\" was taken"; fi
  grep -q "has ended, or there is no token" /tmp/refused || die "$(tail -1 /tmp/refused)"
done

# The lease and its binding outlive a restart.
systemctl restart flagosd
if runc run --bundle /tmp/two two 2>/tmp/refused; then die "a restart forgot whose the token is"; fi
grep -q "another container's" /tmp/refused || die "$(tail -1 /tmp/refused)"
"$python" - <<PY
import json
spec = json.load(open("/run/cdi/flagos.json"))
device = next(d for d in spec["devices"] if d["name"] == "$name")
assert spec["kind"] == "flagos.io/device", spec
assert "deviceNodes" not in device["containerEdits"], device
assert device["containerEdits"]["mounts"][0]["hostPath"] == "$folder", device
PY

# Rootless: alice runs the container herself.
other=$(open_lease alice rootless)
cat >/tmp/rootless.sh <<RUN
set -e
rm -rf /tmp/three; mkdir /tmp/three
CHECKOUT=$CHECKOUT $python $here/bundle.py /tmp/three "\$1" "\$2" rootless
cd /tmp/three
XDG_RUNTIME_DIR=/tmp/alice runc --root /tmp/alice run three
RUN
mkdir -p /tmp/alice; chown alice /tmp/alice; chmod 700 /tmp/alice
runuser -u alice -- bash /tmp/rootless.sh "$program" "$(field 'd["folder"]' <<<"$other")"

flagosctl lease close "$name"
[ ! -e "$folder" ] || die "the folder of a closed lease is there"
flagosctl lease close "$(field 'd["lease"]' <<<"$other")"
await 5 test ! -e /run/cdi/flagos.json
