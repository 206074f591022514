# SPDX-License-Identifier: Apache-2.0
"""Tensors that several processes use: what one writes, the others read, and nothing goes through the host."""

import pickle
from collections.abc import Iterator
from multiprocessing import resource_sharer
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest
import torch
from support.daemon import Daemon
from support.program import run


def send(thing: Any) -> Any:
    """What a receiver in this process gets."""
    return pickle.loads(ForkingPickler.dumps(thing))


@pytest.fixture(scope="module")
def daemon(sockets: Path) -> Iterator[Daemon]:
    """Of four devices, for the sessions of all tests here."""
    daemon = Daemon(sockets / "sharing", devices=4)
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module", autouse=True)
def no_threads_left() -> Iterator[None]:
    """The one that hands descriptors on would stay."""
    yield
    resource_sharer.stop(timeout=5)


@pytest.mark.parametrize(
    "thing",
    [
        lambda x: x,
        lambda x: [x],
        lambda x: torch.nn.Parameter(x),
        lambda x: x.untyped_storage(),
        lambda x: x.storage(),
        lambda x: torch.nn.ParameterList([x]),
    ],
    ids=["tensor", "nested", "parameter", "storage", "typed storage", "module"],
)
@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_what_comes_back_is_the_same_memory(thing: object) -> None:
    x = torch.tensor([1.0, 2.0], device="flagos:1")
    again = send(thing(x))  # type: ignore[operator]
    if isinstance(again, torch.nn.Module | list):
        again = next(iter(again.parameters())) if isinstance(again, torch.nn.Module) else again[0]
    assert str(again.device) == "flagos:1"
    assert again.data_ptr() == x.data_ptr()


def test_a_tensor_without_elements() -> None:
    again = send(torch.empty(0, 3, device="flagos:2"))
    assert again.device == torch.device("flagos:2")
    assert again.shape == (0, 3)


def test_plain_pickles_are_what_they_were() -> None:
    x = torch.ones(2, device="flagos:1")
    again = pickle.loads(pickle.dumps(x))
    assert again.device == x.device
    assert again.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("streams", [0, 1])
def test_a_shared_tensor_is_computed_with_and_keeps_its_size(streams: int) -> None:
    for _ in range(streams):  # then calls can meet at a storage
        torch.flagos.Stream("flagos")
    x = torch.arange(6.0, device="flagos")
    rows = x.view(2, 3)
    send(x)
    assert (x + 1).tolist() == [1, 2, 3, 4, 5, 6]
    x[0] = 5.0
    assert rows.tolist() == [[5, 1, 2], [3, 4, 5]]
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(100)
    with (
        pytest.raises(RuntimeError, match="not resizable"),
        pytest.warns(UserWarning, match="An output with one or more elements was resized"),
    ):
        torch.add(torch.ones(100, device="flagos"), 1, out=torch.empty(0, device="flagos").set_(x))
    assert x.tolist() == [5, 1, 2, 3, 4, 5]


def test_memory_is_counted_once_and_given_back() -> None:
    device = "flagos:3"
    before = torch.flagos.memory_allocated(device)
    x = torch.ones(1 << 20, device=device)
    torch.flagos.synchronize(device)
    assert torch.flagos.memory_allocated(device) - before == 4 << 20
    send(x)
    assert torch.flagos.memory_allocated(device) - before == 4 << 20
    del x
    torch.flagos.synchronize(device)
    assert torch.flagos.memory_allocated(device) == before


# In a process of its own: queues leave multiprocessing's resource tracker running.
SETUP = """
    import os, torch
    import torch.multiprocessing as mp
    from support import sharing
    from support.waiting import wait_for

    spawn = mp.get_context("spawn")

    def start(target, *arguments):
        here, there = spawn.Pipe()
        process = spawn.Process(target=target, args=(there, *arguments))
        process.start()
        return process, here

    def finish(process):
        process.join(60)
        assert process.exitcode == 0, process.exitcode
    """


@pytest.mark.parametrize("where", ["daemon", "embedded"])
def test_arguments_of_a_new_process(daemon: Daemon, where: str) -> None:
    run(
        [
            SETUP,
            """
        x = torch.arange(5.0, device="flagos")
        y = torch.full((300, 300), 3, device="flagos", dtype=torch.int64)
        view = x[1:3]
        process = spawn.Process(target=sharing.double_all, args=([x, y],))
        process.start()
        finish(process)
        assert x.tolist() == [0, 2, 4, 6, 8]
        assert view.tolist() == [2, 4]
        assert y.eq(6).all()
        """,
        ],
        daemon.endpoint if where == "daemon" else "embedded",
    )


def test_pipes(daemon: Daemon) -> None:
    run(
        [
            SETUP,
            """
        # Devices, views and what shares memory.
        base = torch.arange(12.0, device="flagos:2").view(3, 4)
        other = torch.ones(2, device="flagos:3")
        process, pipe = start(sharing.describe)
        pipe.send([base[1, :2], other, base.t()])
        first, second, third = pipe.recv()
        assert first == ("flagos:2", [2], [1], [7, 7])
        assert second == ("flagos:3", [2], [1], [1, 1])
        assert third == ("flagos:2", [4, 3], [1, 4], [[0, 7, 8], [1, 7, 9], [2, 6, 10], [3, 7, 11]])
        assert base[1].tolist() == [7, 7, 6, 7]

        # What was called before is done, on every stream.
        x = torch.zeros(2, device="flagos")
        y = torch.full((700, 700), 1.0, device="flagos")
        with torch.flagos.stream(torch.flagos.Stream()):
            for _ in range(20):
                y = (y @ y).clamp(max=1.0)
            x.add_(y[0, 0])
        pipe.send([torch.zeros(1, device="flagos"), x])
        assert pipe.recv()[1][3] == [1, 1]
        pipe.send(None)
        finish(process)

        # What comes back is what it was, and nothing piles up.
        process, pipe = start(sharing.echo)
        x = torch.ones(3, device="flagos")
        open_before = len(os.listdir("/proc/self/fd"))
        for i in range(20):
            pipe.send(x)
            again = pipe.recv()
            assert again.data_ptr() == x.data_ptr()
            again.add_(1)
        assert x.tolist() == [21] * 3
        assert len(os.listdir("/proc/self/fd")) <= open_before + 1  # the thread that hands descriptors on
        pipe.send(None)
        finish(process)
        """,
        ],
        daemon.endpoint,
    )


def test_a_tensor_outlives_its_sender(daemon: Daemon) -> None:
    run(
        [
            SETUP,
            """
        process, pipe = start(sharing.produce)
        x = pipe.recv()
        expected = list(range(1000))
        assert x.tolist() == expected
        pipe.send("got it")
        assert pipe.recv() == "freed"
        assert x.tolist() == expected
        pipe.send("end")
        finish(process)
        assert x.tolist() == expected
        assert (x + 1).sum().item() == sum(expected) + 1000
        """,
        ],
        daemon.endpoint,
    )


def test_processes_that_are_started_share_a_descriptor(daemon: Daemon) -> None:
    run(
        [
            SETUP,
            """
        class Copies:
            def __init__(self, tensor):
                self.tensor = tensor
            def __reduce__(self):
                return list, ([self.tensor.clone()],)  # which nobody else holds

        def count():
            return len(os.listdir("/proc/self/fd"))

        def fail():
            try:
                spawn.Process(target=sharing.double_all, args=([x], lambda: 0)).start()
            except Exception as error:
                assert "pickle" in str(error), error
            else:
                raise SystemExit("started")

        x = torch.ones(4, device="flagos")
        fail()
        before = count()
        for _ in range(5):
            fail()
        assert count() == before, "a descriptor for each failure"
        process = spawn.Process(target=sharing.double_all, args=([x],))
        process.start()
        finish(process)
        process = spawn.Process(target=sharing.double_all, args=(Copies(x),))
        process.start()
        finish(process)
        process.close()
        assert x.tolist() == [2] * 4
        """,
        ],
        daemon.endpoint,
    )


def test_what_a_queue_has_no_descriptors_for_is_told(daemon: Daemon) -> None:
    run(
        [
            SETUP,
            """
        import resource
        x = [torch.ones(3, device="flagos") for _ in range(100)]
        queue = spawn.Queue()
        enough = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, enough[1]))
        queue.put(x)
        wait_for("the message", lambda: not queue.empty())
        resource.setrlimit(resource.RLIMIT_NOFILE, enough)
        try:
            queue.get(timeout=30)
        except RuntimeError as error:
            assert "Too many open files" in str(error), error
        else:
            raise SystemExit("sent")
        """,
        ],
        daemon.endpoint,
    )


def test_a_model_is_trained_by_two_processes(daemon: Daemon) -> None:
    run(
        [
            SETUP,
            """
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2)
        inputs, targets = torch.randn(8, 4), torch.randn(8, 2)
        shared = torch.nn.Linear(4, 2)
        shared.load_state_dict(model.state_dict())
        shared.to("flagos").share_memory()
        inputs_there, targets_there = inputs.to("flagos"), targets.to("flagos")
        process = spawn.Process(target=sharing.descend, args=(shared, inputs_there, targets_there))
        process.start()
        finish(process)
        sharing.descend(shared, inputs_there, targets_there)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
        torch.testing.assert_close(shared.weight.cpu(), model.weight, rtol=0, atol=0)
        torch.testing.assert_close(shared.bias.cpu(), model.bias, rtol=0, atol=0)
        """,
        ],
        daemon.endpoint,
    )


def test_queues_and_pools(daemon: Daemon) -> None:
    run(
        [
            SETUP,
            """
        queue = spawn.Queue()
        x = torch.arange(4.0, device="flagos")
        queue.put([1, x])
        number, again = queue.get(timeout=60)
        assert number == 1 and again.data_ptr() == x.data_ptr()
        with spawn.Pool(1) as pool:
            assert pool.map(sharing.total, [x, x[1:], torch.ones(3)]) == [6, 6, 3]
            pool.close()
            pool.join()
        # Nothing of it went through the host, but what tolist() and item() read.
        moved = torch.flagos.explain(file=None)
        assert sum(row.bytes_to_host for row in moved) < 64, moved
        """,
        ],
        daemon.endpoint,
    )


def test_a_device_that_the_receiver_does_not_have(daemon: Daemon) -> None:
    run(
        [
            SETUP,
            """
        x = torch.ones(2, device="flagos:1")
        os.environ["FLAGOS_ENDPOINT"] = "embedded"     # of one device
        process, pipe = start(sharing.fails)
        os.environ["FLAGOS_ENDPOINT"] = "nothing"
        pipe.send(x)
        said = pipe.recv()
        assert "this process's session does not have" in said and "tensor.cpu()" in said, said
        finish(process)
        """,
        ],
        daemon.endpoint,
    )


def test_a_vendor_that_cannot_share_says_so(sockets: Path) -> None:
    null = Daemon(sockets / "null", vendor="null")
    try:
        run(
            [
                SETUP,
                """
        def refused(act, *arguments, **options):
            try:
                act(*arguments, **options)
            except RuntimeError as error:
                assert "cannot be shared with another process" in str(error), error
                assert "tensor.cpu()" in str(error), error
            else:
                raise SystemExit("not refused")

        x = torch.ones(2, device="flagos")
        receiver, sender = mp.Pipe(duplex=False)
        refused(sender.send, x)
        refused(spawn.Process(target=print, args=(x,)).start)
        queue = spawn.Queue()
        queue.put([1, x])  # pickled in another thread, which has nobody to tell
        refused(queue.get, timeout=30)
        queue.put("next")
        assert queue.get(timeout=30) == "next"
        """,
            ],
            null.endpoint,
        )
    finally:
        null.stop()
