# SPDX-License-Identifier: Apache-2.0
"""flagosd goes and comes back while jobs train: their losses are those of a run that nothing disturbed."""

import json
import os
import signal

import pytest
from support.daemon import Daemon
from support.program import Program, run
from support.waiting import wait_for

STEPS = 60
PAUSES = (9, 29)  # steps before which flagosd goes, and before which it is back

TRAIN = f"""
    import json, sys
    from support.training import train

    def report(step, loss):
        if step in {PAUSES} and "pause" in sys.argv + [{{pause!r}}]:
            loss.item()
            print(step, flush=True)
            sys.stdin.readline()

    print(json.dumps([loss.hex() for loss in train("flagos", {STEPS}, report=report)]))
"""


def undisturbed(daemon: Daemon) -> list[str]:
    losses: list[str] = json.loads(run(TRAIN.format(pause=""), daemon.endpoint))
    assert len(losses) == STEPS
    return losses


def live(daemon: Daemon, client: int) -> dict[str, object] | None:
    found = [
        s for s in daemon.sessions() if int(s["client_pid"]) == client and s["state"] in ("RUNNING", "IDLE")
    ]
    return found[0] if found else None


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_losses_are_those_of_an_undisturbed_run(daemon: Daemon, how: signal.Signals) -> None:
    expected = undisturbed(daemon)
    with Program(TRAIN.format(pause="pause"), daemon.endpoint) as job:
        assert job.line() == str(PAUSES[0])
        before = daemon.session_of(job.pid)
        os.kill(daemon.pid, how)
        daemon.process.wait(30)
        job.tell()
        assert job.line() == str(PAUSES[1]), "it trains while there is no flagosd"
        daemon.start_again()
        after = wait_for("the session's return", lambda: live(daemon, job.pid), 10)
        assert after["id"] == before["id"]
        assert after["executor_pid"] == before["executor_pid"]
        assert int(after["calls"]) > int(before["calls"]), (
            "calls that were made during the outage are counted"
        )
        assert int(after["memory_used"]) > 0
        job.tell()
        losses = json.loads(job.finish())
    assert losses == expected
    ended = daemon.wait_for_end(job.pid)
    assert ended["state"] == "ENDED", ended
    assert not [file for file in (daemon.folder / "flagosd.sock.state").iterdir() if "session" in file.name]


def test_restarts_one_after_the_other_beside_two_jobs(daemon: Daemon) -> None:
    expected = undisturbed(daemon)
    with (
        Program(TRAIN.format(pause="pause"), daemon.endpoint) as one,
        Program(TRAIN.format(pause="pause"), daemon.endpoint) as other,
    ):
        for pause in PAUSES:
            for job in (one, other):
                assert job.line() == str(pause)
            for _ in range(2):
                daemon.kill()
                daemon.start_again()
                for job in (one, other):
                    wait_for("the session's return", lambda job=job: live(daemon, job.pid), 10)
            for job in (one, other):
                job.tell()
        assert json.loads(one.finish()) == expected
        assert json.loads(other.finish()) == expected
    # A new job is a session of its own.
    assert undisturbed(daemon) == expected
    names = [s["id"] for s in daemon.sessions("--all")]
    assert len(names) == len(set(names)), names


def test_the_output_of_an_executor_reaches_the_new_log(daemon: Daemon) -> None:
    with Program("import torch; torch.ones(1, device='flagos'); print(1); input()", daemon.endpoint) as job:
        job.line()
        daemon.kill()
        daemon.start_again()
        wait_for("the session's return", lambda: live(daemon, job.pid), 10)
        wait_for("its line", lambda: "a new flagosd has the session" in daemon.log.read_text(), 10)
        job.tell()
        job.finish()


def test_a_fault_after_a_restart_names_the_operator(daemon: Daemon) -> None:
    code = """
        import torch
        x = torch.ones(3, device="flagos")
        (x + 1).sum().item()
        print("up", flush=True)
        input()
        try:
            for _ in range(10_000_000):
                (x + 1).sum().item()
        except torch.AcceleratorError as error:
            print(str(error).splitlines()[0], flush=True)
    """
    with Program(code, daemon.endpoint) as job:
        job.line()
        daemon.kill()
        daemon.start_again()
        session = wait_for("the session's return", lambda: live(daemon, job.pid), 10)
        job.tell()
        os.kill(int(session["executor_pid"]), signal.SIGKILL)  # type: ignore[index,call-overload]
        assert "lost" in job.line()
        job.finish()
    ended = daemon.wait_for_end(job.pid)
    assert ended["state"] == "FAULTED"
    assert str(ended["last_operator"]).startswith("aten::")
