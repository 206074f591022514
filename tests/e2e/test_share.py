# SPDX-License-Identifier: Apache-2.0
"""Shares of a device's time: who asks for one gets it said, and nobody can stall the others.

How well shares are kept is measured by tests/bench/share.py.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.daemon import Daemon
from support.program import Program, ask

CONFIG = """
[pool]
warm = 2
[vendor.null]
options = { kernel_us = 200 }
[compute]
mode = "work-conserving"
"""

# Keeps its device busy; a line of input asks for so many more rounds, and is answered when they are done.
WORKER = """
    import sys, torch
    x = torch.ones(4, device="flagos")
    x.relu_()
    torch.flagos.synchronize()
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            for _ in range(100):
                x.relu_()
            torch.flagos.synchronize()
        print("done", flush=True)
"""


class Worker(Program):
    def __init__(self, daemon: Daemon, *terms: str) -> None:
        token = daemon.ctl_json("lease", "open", *terms)["token"]
        super().__init__(WORKER, daemon.endpoint, FLAGOS_TOKEN=token)
        assert self.line() == "ready"
        self.executor = int(daemon.session_of(self.pid)["executor_pid"])

    def begin(self, rounds: int) -> None:
        self.tell(str(rounds))

    def await_done(self) -> None:
        assert self.line() == "done"


@pytest.fixture
def daemon(start_daemon: Callable[..., Daemon]) -> Daemon:
    return start_daemon(vendor="null", warm=None, config=CONFIG)


@pytest.fixture
def stopped() -> Iterator[list[int]]:
    """Processes that go on after the test."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        if Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGCONT)


def test_the_share_is_shown(daemon: Daemon) -> None:
    with Worker(daemon, "--weight", "50", "--max", "40", "--class", "batch") as worker:
        session = daemon.session_of(worker.pid)
        assert session["weight"] == 50
        assert session["max_percent"] == 40
        assert session["share_class"] == "BATCH"
        assert session["compute_mode"] == "work-conserving"
        shown = daemon.ctl("session", "show", session["id"]).stdout
        assert "work-conserving" in shown
        worker.begin(2)
        worker.await_done()
        listed = next(i for i in daemon.ctl_json("lease", "list")["items"] if i["lease"] == session["lease"])
        # 200 calls of 200 microseconds each.
        assert listed["device_time"] >= 0.04
        config = daemon.folder / "flagosd.toml"
        config.write_text(config.read_text().replace("work-conserving", "strict"))
        assert daemon.ctl("config", "reload").returncode == 0
        assert daemon.session_of(worker.pid)["compute_mode"] == "strict"


def test_sessions_without_a_share_take_no_turns(daemon: Daemon) -> None:
    with Worker(daemon) as first, Worker(daemon) as second:
        for worker in (first, second):
            worker.begin(3)
        for worker in (first, second):
            worker.await_done()
        assert all(item["device_time"] == 0 for item in daemon.ctl_json("lease", "list")["items"])
        assert all(item["throttled"] == 0 for item in daemon.sessions())


@pytest.mark.parametrize("what", [signal.SIGSTOP, signal.SIGKILL])
def test_an_executor_that_does_not_move_stalls_nobody(
    daemon: Daemon, stopped: list[int], what: signal.Signals
) -> None:
    with Worker(daemon, "--class", "rt") as first, Worker(daemon, "--class", "batch") as second:
        first.begin(1000)
        os.kill(first.executor, what)  # with the turn, and before all others
        if what == signal.SIGSTOP:
            stopped.append(first.executor)
        second.begin(10)
        second.await_done()


def test_turns_are_taken_while_flagosd_is_down(daemon: Daemon) -> None:
    with Worker(daemon, "--weight", "10") as first, Worker(daemon, "--weight", "90") as second:
        daemon.kill()
        for worker in (first, second):
            worker.begin(10)
        for worker in (first, second):
            worker.await_done()
        os.kill(first.executor, signal.SIGKILL)
        second.begin(5)
        second.await_done()


def test_results_are_the_same_by_turns(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(warm=2)
    code = """
        import json, torch
        torch.manual_seed(0)
        a = torch.randn(64, 64).to("flagos")
        b = a
        for _ in range(200):
            b = (b @ a).tanh()
        print(json.dumps(b.cpu().double().sum().item()))
        """
    alone = ask(code, daemon.endpoint)
    tokens = [daemon.ctl_json("lease", "open", "--weight", weight)["token"] for weight in ("10", "90")]
    programs = [Program(code, daemon.endpoint, FLAGOS_TOKEN=token) for token in tokens]
    for program in programs:
        with program:
            assert float(program.finish()) == alone


@pytest.mark.parametrize("option", [("--weight", "0"), ("--max", "101"), ("--class", "fast")])
def test_what_is_no_share_is_refused(daemon: Daemon, option: tuple[str, str]) -> None:
    done = daemon.ctl("lease", "open", *option)
    assert done.returncode == 2
    assert option[0] in done.stderr
