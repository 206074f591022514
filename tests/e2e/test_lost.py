# SPDX-License-Identifier: Apache-2.0
"""kill -9 of client, executor and daemon in mid-training: what each must look like afterwards.

Beside the session that is hit another one trains on, and its losses are known.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from support.daemon import Daemon
from support.leaks import exists
from support.program import Program, run
from support.training import train
from support.waiting import wait_for

# Trains for ever; says its executor, then a dot every tenth step, then how it ended.
VICTIM = """
    import json, time
    import flagos, torch
    from support.training import train
    x = torch.arange(5.0, device="flagos")
    print(json.dumps(torch.flagos.session_info()))
    def report(step, loss):
        if step % 10 == 0:
            loss.item()
            print(".")
    try:
        train("flagos", 10**9, report=report)
    except flagos.DeviceLostError as error:
        caught = error
    again = []
    for use in (lambda: torch.ones(2, device="flagos"), lambda: x.tolist(), lambda: x + 1,
    torch.flagos.synchronize,
                lambda: torch.flagos.Stream().synchronize(), lambda: torch.zeros(5).copy_(x)):
        began = time.monotonic()
        try:
            use()
            again.append("nothing")
        except torch.AcceleratorError as error:
            again.append(f"{type(error).__name__} {time.monotonic() - began < 1.0}")
    del x
    torch.ones(2) + torch.ones(2)
    print(json.dumps({"error": str(caught), "code": caught.error_code, "again": again}))
    """

NEIGHBOUR = """
    import json
    from support.training import train
    losses = []
    def report(step, loss):
        losses.append(loss.item())
        if step == 5:
            print("training")
            input()
    train("flagos", 60, report=report)
    print(json.dumps(losses))
    """


@contextlib.contextmanager
def neighbour(daemon: Daemon) -> Iterator[Program]:
    """Another session in mid-training. Whatever happens meanwhile, its losses must be those of the CPU."""
    with Program(NEIGHBOUR, daemon.endpoint) as program:
        assert program.line() == "training"
        yield program
        program.tell()
        losses = program.answer()
        program.finish()
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(train("cpu", 60)), rtol=0, atol=1e-5)


@contextlib.contextmanager
def victim(endpoint: str, **env: str) -> Iterator[tuple[Program, int]]:
    """A session in mid-training, and its executor."""
    with Program(VICTIM, endpoint, **env) as program:
        executor = program.answer()["executor_pid"]
        assert [program.line() for _ in range(3)] == ["."] * 3
        yield program, executor


def last_answer(program: Program) -> dict[str, object]:
    """What the victim says after its last dot."""
    while (line := program.line(10)) == ".":
        pass
    answer: dict[str, object] = json.loads(line)
    return answer


def assert_lost(answer: dict[str, object], cause: str) -> None:
    assert cause in str(answer["error"])
    assert answer["code"] == 70001
    assert answer["again"] == ["DeviceLostError True"] * 6


def test_a_killed_executor(daemon: Daemon) -> None:
    with neighbour(daemon), victim(daemon.endpoint) as (program, executor):
        os.kill(executor, signal.SIGKILL)
        began = time.monotonic()
        answer = last_answer(program)
        assert time.monotonic() - began < 5
        assert_lost(answer, "signal 9")
        program.finish()
        session = daemon.wait_for_end(program.pid)
        assert session["state"] == "FAULTED"
        assert "signal 9" in session["end_cause"]
        assert "SIGKILL" in session["end_cause"]
        assert session["last_operator"].startswith("aten::")
        shown = daemon.ctl("session", "show", session["id"])
        assert shown.returncode == 0
        assert "SIGKILL" in shown.stdout
        run("import torch; assert torch.ones(3, device='flagos').sum().item() == 3", daemon.endpoint)
    assert daemon.alive()


@pytest.mark.parametrize(
    "signal_number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM], ids=lambda s: s.name
)
def test_an_executor_that_dies_otherwise(daemon: Daemon, signal_number: signal.Signals) -> None:
    with victim(daemon.endpoint) as (program, executor):
        os.kill(executor, signal_number)
        answer = last_answer(program)
        assert answer["again"] == ["DeviceLostError True"] * 6
        session = daemon.wait_for_end(program.pid)
        if signal_number != signal.SIGTERM:
            assert signal_number.name in session["end_cause"]
        program.finish()


def test_a_dead_executor_ends_every_wait(daemon: Daemon) -> None:
    with Program(
        """
        import threading, flagos, torch
        x = torch.rand(1500, 1500, device="flagos")
        ends = []
        def wait(how):
            try:
                how()
                ends.append("nothing")
            except flagos.DeviceLostError:
                ends.append("lost")
        event = torch.flagos.Event()
        for _ in range(2000):
            torch.mm(x, x)
        event.record()
        hows = [torch.flagos.synchronize, event.synchronize, lambda: x.sum().item(), x.cpu]
        threads = [threading.Thread(target=wait, args=(how,)) for how in hows]
        [t.start() for t in threads]
        print(torch.flagos.session_info()["executor_pid"])
        [t.join() for t in threads]
        print(ends)
        """,
        daemon.endpoint,
    ) as program:
        executor = int(program.line())
        time.sleep(0.5)
        os.kill(executor, signal.SIGKILL)
        assert program.line(5) == str(["lost"] * 4)
        program.finish()


def test_a_killed_client(daemon: Daemon) -> None:
    with neighbour(daemon), victim(daemon.endpoint) as (program, executor):
        program.signal(signal.SIGKILL)
        session = daemon.wait_for_end(program.pid)
        assert session["state"] == "ENDED"
        assert "client" in session["end_cause"]
        wait_for("the executor's end", lambda: not exists(executor), timeout=2.0)
        assert program.pid not in [int(s["client_pid"]) for s in daemon.sessions()]
        program.finish(code=-signal.SIGKILL)


def test_a_killed_client_whose_forked_child_lives_on(daemon: Daemon) -> None:
    with Program(
        """
        import os, time, torch
        x = torch.ones(1000, device="flagos")
        print(torch.flagos.session_info()["executor_pid"])
        child = os.fork()
        if child == 0:
            time.sleep(600)
        print(child)
        while True:
            x.add_(1).sum().item()
        """,
        daemon.endpoint,
    ) as program:
        executor, child = int(program.line()), int(program.line())
        try:
            program.signal(signal.SIGKILL)
            daemon.wait_for_end(program.pid)
            wait_for("the executor's end", lambda: not exists(executor), timeout=2.0)
            assert exists(child)
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_killed_daemon_ends_no_session(daemon: Daemon) -> None:
    with neighbour(daemon) as program, victim(daemon.endpoint) as (other, executor):
        daemon.kill()
        assert other.line() == other.line() == "."
        assert exists(executor)
        # The socket is still there, but nobody answers: a clear error, at once.
        answer = run(
            """
            import torch
            assert not torch.flagos.is_available()
            try:
                torch.ones(2, device="flagos")
            except RuntimeError as error:
                print(error)
            """,
            daemon.endpoint,
        )
        assert str(daemon.socket) in answer
        assert "start flagosd" in answer
        # What a session leaves is reclaimed although nobody supervises it.
        other.signal(signal.SIGKILL)
        wait_for("the executor's end", lambda: not exists(executor), timeout=2.0)
        # A new one takes the socket over, and serves.
        daemon.start_again()
        run("import torch; assert torch.ones(3, device='flagos').sum().item() == 3", daemon.endpoint)
        assert exists(program.pid)


def test_an_executor_killed_while_no_daemon_runs_is_noticed_by_its_client(daemon: Daemon) -> None:
    with victim(daemon.endpoint) as (program, executor):
        daemon.kill()
        os.kill(executor, signal.SIGKILL)
        answer = last_answer(program)
        assert answer["again"] == ["DeviceLostError True"] * 6
        program.finish()


def test_an_embedded_daemon_takes_its_session_along() -> None:
    with victim("embedded") as (program, executor):
        status = Path(f"/proc/{executor}/status").read_text()
        parent = int(status.partition("\nPPid:")[2].split()[0])
        os.kill(parent, signal.SIGKILL)
        answer = last_answer(program)
        assert answer["again"] == ["DeviceLostError True"] * 6
        program.finish()
        wait_for("the executor's end", lambda: not exists(executor), timeout=2.0)


def test_an_embedded_executor_that_is_killed() -> None:
    with victim("embedded") as (program, executor):
        os.kill(executor, signal.SIGKILL)
        assert_lost(last_answer(program), "signal 9")
        program.finish()


def test_a_session_that_is_killed_with_a_reason(daemon: Daemon) -> None:
    with neighbour(daemon), victim(daemon.endpoint) as (program, executor):
        session = daemon.session_of(program.pid)["id"]
        assert daemon.ctl("session", "kill", session).returncode == 2, "a reason is required"
        killed = daemon.ctl("session", "kill", session, "--reason", "lunch break", "--grace", "1s")
        assert killed.returncode == 0, killed.stderr
        assert_lost(last_answer(program), "lunch break")
        program.finish()
        assert not exists(executor)
        assert "lunch break" in daemon.session_of(program.pid)["end_cause"]


def test_a_daemon_that_is_stopped_lets_sessions_go_on(daemon: Daemon) -> None:
    with victim(daemon.endpoint) as (program, executor):
        assert daemon.stop() == 0
        assert not daemon.socket.exists()
        assert program.line() == "."
        assert exists(executor)
        program.signal(signal.SIGKILL)
        wait_for("the executor's end", lambda: not exists(executor), timeout=2.0)


def test_autograd_finishes_without_an_executor(daemon: Daemon) -> None:
    """Its threads may be about to ask for the GIL when the program ends, also when the device is lost."""
    program = """
        import os, signal, torch
        from flagos import ending
        x = torch.ones(2, device="flagos", requires_grad=True)
        (x * 2).sum().backward()
        executor = torch.flagos.session_info()["executor_pid"]
        os.kill(executor, signal.SIGKILL)
        try:
            while True:
                torch.ones(2, device="flagos").sum().item()
        except torch.AcceleratorError:
            pass
        ending._let_autograd_finish()
        leaf, root, gradient = ending._kept
        assert leaf.grad is not None, "its thread did nothing"
        """
    run(program, daemon.endpoint)
