# SPDX-License-Identifier: Apache-2.0
# A user of the group trains on the service's device, as on the CPU; another user is kept out.
cat >/tmp/train.py <<'PY'
import json, torch
from support.training import train
ours, cpu = train("flagos", 20), train("cpu", 20)
torch.testing.assert_close(torch.tensor(ours), torch.tensor(cpu), rtol=1e-4, atol=1e-5)
print(json.dumps(torch.flagos.session_info()))
PY
as alice "$python" /tmp/train.py
sessions --all
[ "$(sessions --all | field 'd["items"][-1]["owner"]')" = alice ] || die "the session is not alice's"
if as mallory "$python" -c 'import torch; torch.ones(1, device="flagos")' 2>/tmp/refused; then die "mallory got in"; fi
tail -1 /tmp/refused
grep -q "group flagos" /tmp/refused || die "mallory is not told why"
