# SPDX-License-Identifier: Apache-2.0
# How an executor ended is told, whoever started it and whether flagosd was there.
cat >/tmp/hold.py <<'PY'
import sys, torch
x = torch.ones(3, device="flagos")
print(x.sum().item(), flush=True)
sys.stdin.readline()
PY
hold() { coproc job { as alice "$python" /tmp/hold.py; }; read -r -t 60 -u "${job[0]}" line; }
newest() { sessions --all | field "d['items'][-1]['$1']"; }
over() { case $(newest state) in ENDED | FAULTED) true ;; *) false ;; esac; }
finish() { exec {job[1]}>&-; wait "$job_PID" 2>/dev/null || true; }

hold
executor=$(newest executor_pid)
unit=$(ps -o unit= -p "$executor")
echo "unit $unit"
kill -SEGV "$executor"
await 5 over
newest end_cause
[ "$(newest state)" = FAULTED ] || die "state"
newest end_cause | grep -q "signal 11 (SIGSEGV)" || die "the signal is not told"
[ -z "$(systemctl list-units --no-legend --all "$unit")" ] || die "the unit is left"
finish

# Adopted: its end is told as well.
hold
executor=$(newest executor_pid)
systemctl restart flagosd
await 10 sh -c 'flagosctl ps -o json | grep -q RUNNING'
kill -SEGV "$executor"
await 5 over
newest end_cause | grep -q "signal 11 (SIGSEGV)" || die "the signal is not told after a restart"
finish

# A client that is killed: everything is gone within two seconds.
hold
executor=$(newest executor_pid)
unit=$(ps -o unit= -p "$executor")
pkill -KILL -u alice -f hold.py
await 2 over
await 2 sh -c "! kill -0 $executor 2>/dev/null"
await 2 sh -c "[ ! -d /sys/fs/cgroup/flagos.slice/flagos-sessions.slice/$unit ]"

# flagosctl's kill, by its owner.
hold
as alice flagosctl session kill "$(newest id)" --reason "enough" >/dev/null
await 2 over
[ "$(newest state)" = ENDED ] || die "state after a kill"
finish
