# SPDX-License-Identifier: Apache-2.0
"""Forks, threads, workers and the end of a process.

# regressions.md 17, 109
"""

import signal
import threading
from pathlib import Path

import pytest
import torch
from support.daemon import Daemon
from support.leaks import exists
from support.program import Program, ask, run
from support.waiting import wait_for

FORKED = """
    import json, os, torch

    def in_child(work):
        '''What `work` returns or raises in a forked child, which ends as a Python process does.'''
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                answer = work()
            except Exception as error:
                answer = f"{type(error).__name__}: {error}"
            os.write(writer, json.dumps(answer).encode())
            raise SystemExit(0)
        os.close(writer)
        with os.fdopen(reader) as end:
            answer = json.loads(end.read())
        assert os.waitpid(child, 0)[1] == 0
        return answer
    """


def test_a_fork_of_a_process_that_uses_the_device_must_not() -> None:
    run(
        [
            FORKED,
            """
        x = torch.arange(3.0, device="flagos")
        for use in (lambda: torch.ones(1, device="flagos").tolist(), lambda: x.tolist(), lambda: (x +
        1).tolist(),
                    torch.flagos.init, torch.flagos.synchronize, lambda: torch.ones(1).pin_memory(),
                    lambda: torch.zeros(3).copy_(x)):
            answer = in_child(use)
            assert answer.startswith("RuntimeError: Cannot re-initialize flagos in forked subprocess"), answer
            assert "'spawn' start method" in answer
        def harmless():
            torch.manual_seed(3)
            assert torch.flagos.is_available() and torch.flagos.device_count() == 1
            y = torch.ones(2, requires_grad=True)
            (y * 2).sum().backward()
            view, shape = x[1:], x.shape
            return [torch.flagos._is_in_bad_fork(), torch.flagos.is_initialized(), y.grad.tolist()]
        assert in_child(harmless) == [True, False, [2.0, 2.0]]
        assert not torch.flagos._is_in_bad_fork()
        assert (x + 1).tolist() == [1, 2, 3]           # the children, and their ends, changed nothing
        """,
        ],
        "embedded",
    )


def test_a_fork_before_the_first_use_may_use_it() -> None:
    run(
        [
            FORKED,
            """
        assert torch.flagos.is_available()
        for i in range(2):
            assert in_child(lambda: (torch.ones(2, device="flagos") + i).tolist()) == [1.0 + i] * 2
        assert torch.ones(2, device="flagos").tolist() == [1, 1]
        """,
        ],
        "embedded",
    )


def test_a_fork_while_another_thread_asks_for_the_devices(tmp_path: Path) -> None:
    run(
        [
            FORKED,
            f"""
        import socket, threading
        path = {str(tmp_path / "d.sock")!r}
        silent = socket.socket(socket.AF_UNIX)
        silent.bind(path)
        silent.listen()
        os.environ["FLAGOS_ENDPOINT"] = "unix://" + path
        thread = threading.Thread(target=torch.flagos.device_count)
        thread.start()
        asked, _ = silent.accept()                     # from here the thread waits for an answer
        def ask():
            os.environ["FLAGOS_ENDPOINT"] = "embedded"
            return torch.flagos.device_count()
        assert in_child(ask) == 1
        asked.close()
        thread.join()
        assert torch.flagos.device_count() == 0
        """,
        ],
    )


def test_spawned_processes_have_sessions_of_their_own(daemon: Daemon) -> None:
    run(
        """
        import torch.multiprocessing as mp
        from support.spawned import work
        import torch
        assert torch.ones(2, device="flagos").sum().item() == 2
        with mp.get_context("spawn").Pool(2) as pool:
            assert pool.map(work, [1, 2, 3]) == [[2.0], [4.0], [6.0]]
            pool.close()
            pool.join()
        """,
        daemon.endpoint,
        timeout=120,
    )
    wait_for("the sessions' end", lambda: daemon.sessions() == [], timeout=2.0)
    assert len(daemon.sessions("--all")) == 3


def test_threads_share_the_session() -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        try:
            x = torch.full((64,), float(number), device="flagos", requires_grad=True)
            for i in range(60):
                y = (x * i).sum()
                if y.item() != 64.0 * number * i:
                    wrong.append((number, i, y.item()))
            y.backward()
            if x.grad is None or x.grad.tolist() != [59.0] * 64:
                wrong.append((number, "gradient"))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert wrong == []


def test_many_threads_may_use_the_device_first() -> None:
    assert ask(
        """
            import json, threading, torch
            barrier, results = threading.Barrier(8), []
            def work(i):
                barrier.wait()
                results.append((torch.ones(3, device="flagos") * i).sum().item())
            threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            [t.start() for t in threads]; [t.join() for t in threads]
            print(json.dumps(sorted(results)))
            """,
        "embedded",
    ) == [3.0 * i for i in range(8)]


def test_a_process_ends_well_with_live_tensors_threads_and_work() -> None:
    for ending in ("", "sys.exit(0)", "os.kill(os.getpid(), signal.SIGTERM)"):
        code = f"""
            import gc, json, os, signal, sys, threading, time, torch
            class Holder:
                def __del__(self):
                    self.x = None
            keep = Holder()
            keep.x = torch.ones(1000, 1000, device="flagos")
            keep.cycle = keep
            streams = [torch.flagos.Stream() for _ in range(3)]
            events = [s.record_event() for s in streams]
            generator = torch.Generator(device="flagos").manual_seed(1)
            torch.rand(3, device="flagos", generator=generator)
            pinned = torch.ones(1000).pin_memory()
            # It must not be in a call when the interpreter ends: PyTorch aborts then, on the CPU too.
            threading.Thread(target=lambda x=keep.x @ keep.x: time.sleep(100), daemon=True).start()
            for _ in range(20):
                keep.x @ keep.x                              # still in the ring at the end
            print(json.dumps(torch.flagos.session_info()["executor_pid"]), flush=True)
            {ending}
            """
        with Program(code, "embedded") as program:
            executor = program.answer()
            program.finish(30, code=-15 if "SIGTERM" in ending else 0)
            assert program.errors == ""
        wait_for(f"the executor's end after {ending!r}", lambda pid=executor: not exists(pid), timeout=2.0)


@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)"])
def test_a_process_may_end_right_after_a_backward(ending: str) -> None:
    """Autograd's thread of the device still has something to let go of, for which it needs the GIL."""
    code = f"""
        import sys, torch
        sys.setswitchinterval(100)  # this thread keeps the GIL to the end, unless it waits for something
        x = torch.ones(2, device="flagos:1", requires_grad=True)
        y = 2 * x
        torch.autograd.grad(y, x, torch.ones_like(y))
        {ending}
        """
    run(code, "embedded", FLAGOS_DEVICES="2")


@pytest.mark.parametrize("closed", [[0], [0, 1], [0, 1, 2]])
def test_standard_streams_may_be_closed(closed: list[int]) -> None:
    run(
        f"""
        import os, torch
        for number in {closed}:
            os.close(number)
        assert torch.ones(2, device="flagos").tolist() == [1, 1]
        """,
        "embedded",
    )


def test_ctrl_c_reaches_the_program_and_not_its_devices() -> None:
    with Program(
        """
        import torch
        x = torch.ones(100, 100, device="flagos")
        try:
            print("ready")
            while True:
                x @ x
                x.sum().item()
        except KeyboardInterrupt:
            print((x + 1)[0, 0].item())
        """,
        "embedded",
    ) as program:
        assert program.line() == "ready"
        program.signal(signal.SIGINT)
        assert program.line() == "2.0"
        program.finish()


def test_a_loader_with_workers_pins_and_opens_no_session_of_theirs(daemon: Daemon) -> None:
    with Program(
        """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        data = TensorDataset(torch.arange(40.0).view(20, 2), torch.arange(20))
        for use_before in (False, True):
            loader = DataLoader(data, batch_size=5, num_workers=2, pin_memory=True)
            seen = []
            for x, y in loader:
                assert x.is_pinned() and y.is_pinned()
                device = x.to("flagos", non_blocking=True)
                seen += (device.sum(dim=1) + y.to("flagos", non_blocking=True)).tolist()
            assert seen == [(4 * i + 1) + i for i in range(20)], seen
        print("done")
        input()
        """,
        daemon.endpoint,
    ) as program:
        assert program.line(120) == "done"
        assert [int(s["client_pid"]) for s in daemon.sessions("--all")] == [program.pid]
        program.tell()
        program.finish()


def test_pinned_tensors_live_on_in_a_forked_child() -> None:
    run(
        [
            FORKED,
            """
        from torch.utils.data import DataLoader, TensorDataset
        data = torch.arange(1000.0).pin_memory()
        def work():
            sum = data.sum().item()
            data.zero_()                               # its own from here on
            copy = data[:3].clone()
            return [sum, data.sum().item(), copy.tolist(), data.is_pinned()]
        assert in_child(work) == [499500.0, 0.0, [0.0] * 3, False]
        assert data.sum().item() == 499500.0 and data.is_pinned()
        for batch, in DataLoader(TensorDataset(data), batch_size=500, num_workers=2):
            assert batch.sum().item() in (124750.0, 374750.0)
        del data, batch                                # the children freed nothing of this process's
        assert torch.full((1000,), 2.0).pin_memory().to("flagos").sum().item() == 2000.0
        """,
        ],
        "embedded",
    )


def test_a_loader_that_pins_works_without_a_daemon() -> None:
    run(
        """
        import torch, warnings
        from torch.utils.data import DataLoader
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            batches = [b.tolist() for b in DataLoader(torch.arange(4.0), batch_size=2, pin_memory=True,
            num_workers=1)]
        assert batches == [[0, 1], [2, 3]], batches
        """,
        "unix:///nowhere/flagosd.sock",
    )
