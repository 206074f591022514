# SPDX-License-Identifier: Apache-2.0
# flagosd is restarted, killed, stopped, reloaded and upgraded while a job trains: the losses are those of an undisturbed run, no
# operation fails, and operations complete while it is away. Who attaches meanwhile waits in the socket.
cat >/tmp/job.py <<'PY'
import json, sys, torch
from support.training import train
def report(step, loss):
    if sys.argv[1] == "disturbed":
        loss.item()
        print(step, flush=True)
        if sys.stdin.readline() == "":
            sys.exit("nobody is there")
print(json.dumps([loss.hex() for loss in train("flagos", 24, report=report)]))
PY
expected=$(as alice "$python" /tmp/job.py undisturbed)

coproc job { as alice "$python" /tmp/job.py disturbed; }
exec {to}>&"${job[1]}" {from}<&"${job[0]}"
step() { local line; for _ in $(seq "$1"); do read -r -t 60 -u "$from" line || die "the job says nothing"; echo go >&"$to"; done; }
live() { sessions | field '[s["id"] + " " + str(s["executor_pid"]) for s in d["items"] if s["state"] in ("RUNNING", "IDLE")]'; }
calls() { sessions | field 'sum(int(s["calls"]) for s in d["items"])'; }
pid() { systemctl show -P MainPID flagosd; }
step 2
before=$(live)
echo "$before"
again() { [ "$(live 2>/dev/null)" = "$before" ]; }
came_back() { await 20 again; [ "$(pid)" != "$1" ] || die "flagosd was not restarted"; step 2; echo "after $2: $(live)"; }

old=$(pid); systemctl restart flagosd; came_back "$old" restart
old=$(pid); kill -9 "$old"; await 20 sh -c "[ \$(systemctl show -P MainPID flagosd) != $old ]"; came_back "$old" "kill -9"
systemctl daemon-reload; step 1; again || die "daemon-reload"
systemctl reload flagosd; step 1; again || die "reload"
old=$(pid); dpkg -i /flagos.deb >/dev/null; came_back "$old" upgrade

# Stopped: the socket stays, the job goes on, and another one waits.
old=$(pid); done_before=$(calls)
systemctl stop flagosd.service
step 4
as bob "$python" -c 'import torch; print(torch.ones(3, device="flagos").sum().item())' >/tmp/waiting 2>&1 &
waiting=$!
came_back "$old" "stop and a new attach"
wait $waiting || { cat /tmp/waiting; die "the one that waited failed"; }
[ "$(cat /tmp/waiting)" = 3.0 ] || die "$(cat /tmp/waiting)"
[ "$(calls)" -gt "$done_before" ] || die "nothing was done meanwhile"
echo "calls before the stop $done_before, now $(calls)"

# A flagosd that hangs is replaced by its watchdog.
old=$(pid); kill -STOP "$old"; step 1
await 60 sh -c "[ \$(systemctl show -P MainPID flagosd) != $old ]"
came_back "$old" "a watchdog"

step 5
read -r -t 60 -u "$from" losses || die "no losses"
[ "$losses" = "$expected" ] || die "losses differ: $losses"
ended() { sessions --all | field 'all(s["state"] == "ENDED" for s in d["items"])' | grep -q True; }
await 5 ended
! grep -rl session- /run/flagosd/ 2>/dev/null || true
[ -z "$(ls /run/flagosd | grep session)" ] || die "records are left: $(ls /run/flagosd)"
[ -z "$(systemctl list-units --no-legend --state=failed 'flagos-executor-*')" ] || die "failed units are left"
