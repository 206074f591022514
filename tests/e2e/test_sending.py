# SPDX-License-Identifier: Apache-2.0
"""A tensor of flagos that is sent to another process is refused: by the sender or else by the receiver."""

import pickle
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from support.program import run

REFUSED = r"flagos:\d cannot be sent to another process.*\.cpu\(\)"


@pytest.mark.parametrize(
    "thing",
    [
        lambda x: x,
        lambda x: {"a": [x]},
        lambda x: torch.nn.Parameter(x),
        lambda x: x.untyped_storage(),
        lambda x: x.storage(),
        lambda x: torch.nn.Linear(2, 2).to(x.device),
    ],
    ids=["tensor", "nested", "parameter", "storage", "typed storage", "module"],
)
@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_pickling_for_another_process_is_refused(thing: object) -> None:
    with pytest.raises(RuntimeError, match=REFUSED):
        ForkingPickler.dumps(thing(torch.ones(2, device="flagos:1")))  # type: ignore[operator]


# In a process of its own: queues leave multiprocessing's resource tracker running.
SENDING = """
    import re, torch
    import torch.multiprocessing as mp

    def refused(act, *arguments, **options):
        try:
            act(*arguments, **options)
        except RuntimeError as error:
            assert re.search(r"flagos:0 cannot be sent to another process.*cpu", str(error)), error
        else:
            raise SystemExit("not refused")

    x = torch.ones(2, device="flagos")
    spawn = mp.get_context("spawn")
    """


def test_pipes_and_simple_queues_and_new_processes_refuse_at_once() -> None:
    run(
        [
            SENDING,
            """
        receiver, sender = mp.Pipe(duplex=False)
        refused(sender.send, x)
        refused(spawn.SimpleQueue().put, x)
        refused(spawn.Process(target=print, args=(x,)).start)
        sender.send(torch.ones(2))
        assert receiver.recv().tolist() == [1, 1]
        """,
        ],
        "embedded",
    )


def test_what_comes_out_of_a_queue_is_the_reason() -> None:
    run(
        [
            SENDING,
            """
        queue = spawn.Queue()
        queue.put([1, x])  # pickled in another thread, which has nobody to tell
        refused(queue.get, timeout=30)
        queue.put("next")
        assert queue.get(timeout=30) == "next"
        """,
        ],
        "embedded",
    )


def test_plain_pickles_are_what_they_were() -> None:
    x = torch.ones(2, device="flagos:1")
    assert pickle.loads(pickle.dumps(x)).device == x.device
