# SPDX-License-Identifier: Apache-2.0
"""A ring that is full makes the producer wait, says so, and loses nothing."""

import os
import signal
from collections.abc import Callable

import pytest
from support.daemon import Daemon
from support.program import Program, run
from support.waiting import wait_for

SMALL = '[session]\nring = "64KiB"\narena = "32MiB"\n'

FLOOD = """
    import flagos, torch
    x = torch.zeros(3, device="flagos")
    x += 1
    print(torch.flagos.session_info()["executor_pid"])
    input()
    try:
        for _ in range(5000):
            x += 1
        print(x.tolist())
    except flagos.DeviceLostError as error:
        print("lost:", error)
    """


@pytest.fixture
def small(start_daemon: Callable[..., Daemon]) -> Daemon:
    return start_daemon(config=SMALL)


def test_everything_works_through_a_small_ring_and_arena(small: Daemon) -> None:
    run(
        """
        import torch
        from support.training import train
        losses = torch.tensor(train("flagos", 40))
        torch.testing.assert_close(losses, torch.tensor(train("cpu", 40)), rtol=0, atol=1e-5)
        x = torch.randn(20_000_000)                     # 80 MB through 32 MiB
        assert torch.equal(x.to("flagos").cpu(), x)
        assert torch.equal(x.view(4000, 5000).t().to("flagos").cpu(), x.view(4000, 5000).t())
        tensors = [torch.full((2,), float(i), device="flagos") for i in range(3000)]
        assert torch.stack(tensors[:300]).sum().item() == 2 * sum(range(300))
        assert torch._foreach_add(tensors[:300], 1.0)[299].tolist() == [300.0] * 2
        try:
            torch._foreach_add(tensors, 1.0)            # one record, larger than half of the ring
        except RuntimeError as error:
            assert "larger ring" in str(error), error
        else:
            raise AssertionError("a record larger than the ring takes")
        assert tensors[2999].tolist() == [2999.0] * 2
        try:
            torch.empty(20_000_000, pin_memory=True)
        except RuntimeError as error:
            assert "arena" in str(error), error
        else:
            raise AssertionError("pinned more than there is")
        """,
        small.endpoint,
        timeout=120,
    )


def test_copies_go_through_an_arena_of_less_than_a_piece(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(config='[session]\narena = "1MiB"\n')
    run(
        """
        import torch
        x = torch.randn(3_000_000)                      # 12 MB through 1 MiB
        assert torch.equal(x.to("flagos").cpu(), x)
        assert torch.equal(x.view(1000, 3000).t().to("flagos").cpu(), x.view(1000, 3000).t())
        """,
        daemon.endpoint,
    )


def test_a_full_ring_blocks_and_flagosctl_says_why(small: Daemon) -> None:
    with Program(FLOOD, small.endpoint) as program:
        executor = int(program.line())
        os.kill(executor, signal.SIGSTOP)
        try:
            program.tell()
            session = wait_for(
                "a blocked producer",
                lambda: next((s for s in [small.session_of(program.pid)] if s["blocked"]), None),
            )
            assert session is not None
            assert "ring full" in session["blocked"]
            assert int(session["queue_bytes"]) > 32 * 1024
            assert int(session["ring_bytes"]) == 64 * 1024
            assert "ring full" in small.ctl("session", "show", session["id"]).stdout
        finally:
            os.kill(executor, signal.SIGCONT)
        assert program.line(30) == "[5001.0, 5001.0, 5001.0]"
        session = small.session_of(program.pid)
        assert not session["blocked"]
        assert int(session["blocked_count"]) >= 1
        program.finish()


def test_a_producer_that_waits_for_a_dead_executor_is_told(small: Daemon) -> None:
    with Program(FLOOD, small.endpoint) as program:
        executor = int(program.line())
        os.kill(executor, signal.SIGSTOP)
        program.tell()
        wait_for("a blocked producer", lambda: small.session_of(program.pid)["blocked"])
        os.kill(executor, signal.SIGKILL)
        line = program.line(5)
        assert line.startswith("lost:")
        assert "signal 9" in line
        program.finish()


def test_a_client_killed_while_it_waits_is_reclaimed(small: Daemon) -> None:
    with Program(FLOOD, small.endpoint) as program:
        executor = int(program.line())
        os.kill(executor, signal.SIGSTOP)
        program.tell()
        wait_for("a blocked producer", lambda: small.session_of(program.pid)["blocked"])
        program.signal(signal.SIGKILL)
        # The executor cannot end by itself: flagosd does it.
        small.wait_for_end(program.pid, timeout=2.0)
