# SPDX-License-Identifier: Apache-2.0
"""What a lease may hold: one limit on each device for all its processes together."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.daemon import Daemon
from support.program import Program, ask
from support.waiting import wait_for

MIB = 2**20
QUOTA = 64 * MIB

# Carries out what it is told, a line each, and prints a word of JSON.
WORKER = """
    import json, sys, torch
    held = []
    def get(mib, device=0):
        try:
            held.append(torch.empty(mib * 2**20, dtype=torch.uint8, device=f"flagos:{device}"))
            return True
        except torch.OutOfMemoryError as error:
            return str(error)
    torch.flagos.init()
    print('"ready"', flush=True)
    for line in sys.stdin:
        print(json.dumps(eval(line)), flush=True)
"""


class Worker(Program):
    def __init__(self, daemon: Daemon, token: str) -> None:
        super().__init__(WORKER, daemon.endpoint, FLAGOS_TOKEN=token)
        assert self.answer() == "ready"

    def do(self, what: str) -> object:
        self.tell(what)
        return self.answer()


def device_memory(executor: int) -> int:
    """What an executor holds of its devices, as the kernel says: its memfds of that name."""
    held = 0
    for entry in Path(f"/proc/{executor}/fd").iterdir():
        if "memfd:flagos-cpu" in os.readlink(entry):
            held += entry.stat().st_size
    return held


@pytest.fixture
def daemon(start_daemon: Callable[..., Daemon]) -> Daemon:
    return start_daemon(devices=2, warm=2)


def open_lease(daemon: Daemon, *options: str) -> dict[str, str]:
    opened: dict[str, str] = daemon.ctl_json("lease", "open", "--memory", "64MiB", *options)
    return opened


def lease_of(daemon: Daemon, lease: str) -> dict[str, object]:
    found = [item for item in daemon.ctl_json("lease", "list")["items"] if item["lease"] == lease]
    assert len(found) == 1
    return found[0]


def test_two_processes_together_hold_no_more_than_the_quota(daemon: Daemon) -> None:
    lease = open_lease(daemon, "--name", "pair")
    with Worker(daemon, lease["token"]) as first, Worker(daemon, lease["token"]) as second:
        assert first.do("get(40)") is True
        refused = second.do("get(30)")
        assert isinstance(refused, str)
        largest = daemon.session_of(first.pid)["id"]
        assert f"of its quota of 64.00 MiB there, session {largest} most of it: 40." in refused
        assert "free" in refused
        assert second.do("get(20)") is True
        assert second.do("get(30, device=1)") is True, "the other device has a quota of its own"

        sessions = [daemon.session_of(worker.pid) for worker in (first, second)]
        held = [device_memory(int(session["executor_pid"])) for session in sessions]
        assert sum(held) <= QUOTA + 32 * MIB  # on two devices
        assert [int(session["memory_used"]) for session in sessions] == held
        assert all(int(session["memory_quota"]) == 2 * QUOTA for session in sessions)
        listed = lease_of(daemon, lease["lease"])
        assert listed["sessions"] == 2
        assert listed["memory_limit"] == "64MiB"
        assert listed["memory_used"] == sum(held)

        free, total = second.do("torch.flagos.mem_get_info()")  # type: ignore[misc]
        used = daemon.ctl_json("lease", "list")["items"]
        on_first = next(
            d for i in used if i["lease"] == lease["lease"] for d in i["devices"] if d["index"] == 0
        )
        assert total == QUOTA == on_first["memory_quota"]
        assert free == QUOTA - on_first["memory_used"]


def test_cached_memory_is_given_up_before_a_call_fails(daemon: Daemon) -> None:
    lease = open_lease(daemon)
    with Worker(daemon, lease["token"]) as worker:
        assert worker.do("get(40)") is True
        assert worker.do("held.clear()") is None
        assert worker.do("get(50)") is True


def test_an_operators_result_over_the_quota_is_an_error_and_the_session_goes_on(daemon: Daemon) -> None:
    lease = open_lease(daemon)
    answer = ask(
        """
        import json, torch
        x = torch.ones(12 * 2**20, dtype=torch.uint8, device="flagos")
        try:
            x.expand(100, -1).contiguous()
            said = ""
        except torch.OutOfMemoryError as error:
            said = str(error)
        print(json.dumps([said, x.amin().item()]))
        """,
        daemon.endpoint,
        FLAGOS_TOKEN=lease["token"],
    )
    assert "of its quota of 64.00 MiB" in answer[0]
    assert answer[1] == 1


def test_a_killed_process_gives_back_what_it_held_also_without_flagosd(daemon: Daemon) -> None:
    lease = open_lease(daemon)
    with Worker(daemon, lease["token"]) as first, Worker(daemon, lease["token"]) as second:
        assert first.do("get(50)") is True
        executor = int(daemon.session_of(first.pid)["executor_pid"])
        daemon.kill()
        first.signal(signal.SIGKILL)
        wait_for("the end of the executor", lambda: not Path(f"/proc/{executor}").exists())
        assert second.do("get(60)") is True
        assert isinstance(second.do("get(10)"), str), "the limit holds without flagosd"


def test_the_configured_limit_holds_for_processes_without_a_lease(
    start_daemon: Callable[..., Daemon],
) -> None:
    daemon = start_daemon(warm=None, config='[pool]\nwarm = 1\n[quota]\ndefault_memory = "25%"\n')
    answer = ask(
        """
        import json, torch
        free, total = torch.flagos.mem_get_info()
        whole = torch.flagos.get_device_properties(0).total_memory
        print(json.dumps([free, total, whole]))
        """,
        daemon.endpoint,
    )
    free, total, whole = answer
    assert total == whole // 4
    assert free <= total
    config = daemon.folder / "flagosd.toml"
    config.write_text(config.read_text().replace("25%", "none"))
    assert daemon.ctl("config", "reload").returncode == 0
    answer = ask(
        "import json, torch; print(json.dumps(torch.flagos.mem_get_info()))",
        daemon.endpoint,
    )
    assert answer[1] == whole


@pytest.mark.parametrize("limit", ["4", "0%", "101%", "much"])
def test_what_is_no_limit_is_refused(daemon: Daemon, limit: str) -> None:
    done = daemon.ctl("lease", "open", "--memory", limit)
    assert done.returncode == 2
    assert limit in done.stderr
    assert "4GiB" in done.stderr


def test_a_limit_holds_through_a_restart_of_flagosd(daemon: Daemon) -> None:
    lease = open_lease(daemon)
    with Worker(daemon, lease["token"]) as one:
        assert one.do("get(40)") is True
        before = daemon.session_of(one.pid)
        daemon.kill()
        assert isinstance(one.do("get(40)"), str), "the executor enforces it by itself"
        daemon.start_again()
        # A process that comes at once waits for what the lease's others hold.
        with Worker(daemon, lease["token"]) as other:
            assert isinstance(other.do("get(40)"), str)
            assert other.do("get(16)") is True
            assert daemon.session_of(one.pid)["id"] == before["id"]
            held = sum(int(s["memory_used"]) for s in daemon.sessions())
            assert 56 * MIB <= held <= QUOTA
            assert (
                device_memory(int(daemon.session_of(one.pid)["executor_pid"]))
                + device_memory(int(daemon.session_of(other.pid)["executor_pid"]))
                <= QUOTA
            )
            one.do("held.clear() or torch.flagos.empty_cache()")
            assert other.do("get(40)") is True
