# SPDX-License-Identifier: Apache-2.0
# The units, and what an executor is: a unit of its own, with a user, a cgroup and a view of the file system of its own.
systemctl is-active flagosd.socket flagosd-executors.socket flagosd-containers.socket flagosd.service
systemd-analyze --man=no verify flagosd.service flagosd.socket flagosd-executors.socket flagosd-containers.socket flagos-sessions.slice 2>/tmp/verify || die "$(cat /tmp/verify)"
! grep -i flagos /tmp/verify || die "systemd-analyze verify complains"
await 30 sh -c 'flagosctl device list | grep -q HEALTHY'
flagosctl device list

unit=$(systemctl list-units --no-legend --plain 'flagos-executor-*' | awk '{print $1; exit}')
[ -n "$unit" ] || die "no executor is a unit"
systemctl show "$unit" -p Slice,DynamicUser,User,PrivateNetwork,MainPID,ControlGroup
[ "$(systemctl show -P Slice "$unit")" = flagos-sessions.slice ] || die "slice"
pid=$(systemctl show -P MainPID "$unit")
[ "$(stat -c %u "/proc/$pid")" -ge 61184 ] || die "not a user of its own: $(stat -c %u "/proc/$pid")"
! grep -qs . <(nsenter -t "$pid" -n ip link 2>/dev/null | grep -v 'lo:') || die "it has a network"
grep -q "CapEff:[[:space:]]*0000000000000000" "/proc/$pid/status" || die "it has capabilities"
[ "$(ls "/proc/$pid/root/run/flagosd")" = executors ] || die "it sees more of flagosd's folder"
daemon=$(systemctl show -P MainPID flagosd)
grep -q "CapEff:[[:space:]]*0000000000000000" "/proc/$daemon/status" || die "flagosd has capabilities"

# systemd's own judgement: 0 is the best, 10 the worst.
for pair in flagosd.service:2.0 "$unit:1.5"; do
  exposure=$(systemd-analyze --no-pager security "${pair%:*}" | sed -n 's/.*exposure level for [^:]*: \([0-9.]*\).*/\1/p')
  echo "exposure of ${pair%:*}: $exposure, at most ${pair#*:}"
  "$python" -c 'import sys; sys.exit(not float(sys.argv[1]) <= float(sys.argv[2]))' "$exposure" "${pair#*:}" || die "exposure"
done
