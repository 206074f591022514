# SPDX-License-Identifier: Apache-2.0
"""Streams run side by side, and events order them. On the cpu vendor a missing wait is a wrong result.

# regressions.md 10, 20, 21, 23, 24, 25, 26; contract.md 17, 18
"""

import threading
import time

import pytest
import torch
from support.waiting import wait_for


class SlowProducer:
    """Writes ones into `target` on a stream, long after issuing that returned."""

    def __init__(self) -> None:
        self.target = torch.zeros(1000, device="flagos")
        self._left = torch.full((900, 900), 1 / 900, device="flagos")
        self._work = self._left.clone()
        torch.flagos.synchronize()

    def run(self, stream: torch.flagos.Stream) -> None:
        with torch.flagos.stream(stream):
            for _ in range(6):
                torch.mm(self._left, self._left, out=self._work)
            self.target.copy_(self._work[0, 0].expand(1000) * 900)


def consume(producer: SlowProducer, stream: torch.flagos.Stream) -> float:
    with torch.flagos.stream(stream):
        copy = producer.target.clone()
    stream.synchronize()
    return copy.min().item()


def test_without_a_wait_the_consumer_reads_what_was_there_before() -> None:
    seen = []
    for _ in range(5):
        producer = SlowProducer()
        producer.run(torch.flagos.Stream())
        seen.append(consume(producer, torch.flagos.Stream()))
        torch.flagos.synchronize()
    assert 0.0 in seen, "streams do not run side by side, or the next tests would prove nothing"


@pytest.mark.parametrize("how", ["wait_stream", "wait_event", "event.wait", "synchronize", "record_event"])
def test_with_a_wait_the_consumer_reads_the_result(how: str) -> None:
    for _ in range(3):
        producer = SlowProducer()
        one, other = torch.flagos.Stream(), torch.flagos.Stream()
        producer.run(one)
        event = torch.flagos.Event()
        if how == "wait_stream":
            other.wait_stream(one)
        elif how == "wait_event":
            event.record(one)
            other.wait_event(event)
        elif how == "event.wait":
            event.record(one)
            event.wait(other)
        elif how == "record_event":
            other.wait_event(one.record_event())
        else:
            one.synchronize()
        assert consume(producer, other) == pytest.approx(1.0, abs=1e-4)


def test_issuing_does_not_wait() -> None:
    producer = SlowProducer()
    stream = torch.flagos.Stream()
    began = time.monotonic()
    producer.run(stream)
    issued = time.monotonic() - began
    stream.synchronize()
    assert issued < (time.monotonic() - began) / 2


def test_query_tells_whether_work_is_done() -> None:
    producer = SlowProducer()
    stream, event = torch.flagos.Stream(), torch.flagos.Event()
    wait_for("a stream without work", stream.query)
    assert event.query(), "one that was not recorded counts as complete"
    producer.run(stream)
    event.record(stream)
    assert not event.query()
    assert not stream.query()
    event.synchronize()
    assert event.query()
    wait_for("the stream's end", stream.query)


def test_other_streams_go_on_while_one_is_waited_for() -> None:
    producer = SlowProducer()
    slow, quick = torch.flagos.Stream(), torch.flagos.Stream()
    producer.run(slow)
    with torch.flagos.stream(quick):
        assert torch.ones(3, device="flagos").sum().item() == 3.0
    assert not slow.query(), "reading from one stream waited for another"
    slow.synchronize()


def test_the_context_switches_and_restores() -> None:
    before = torch.flagos.current_stream()
    assert before == torch.flagos.default_stream()
    one, other = torch.flagos.Stream(), torch.flagos.Stream(device="flagos:2", priority=-1)
    with torch.flagos.stream(one) as entered:
        assert entered is one
        assert torch.flagos.current_stream() == torch.accelerator.current_stream() == one
        with torch.flagos.stream(other):
            assert torch.flagos.current_device() == 2
            assert torch.flagos.current_stream() == other
            assert torch.flagos.current_stream(0) == one
        assert torch.flagos.current_device() == 0
        with torch.flagos.stream(None):
            assert torch.flagos.current_stream() == one
    assert torch.flagos.current_stream() == before
    with one:
        assert torch.flagos.current_stream() == one
    assert torch.flagos.current_stream() == before
    torch.flagos.set_stream(one)
    assert torch.accelerator.current_stream() == one
    torch.flagos.set_stream(torch.flagos.default_stream())


def test_the_current_stream_belongs_to_the_thread() -> None:
    seen: list[bool] = []
    with torch.flagos.stream(torch.flagos.Stream()):
        thread = threading.Thread(
            target=lambda: seen.append(torch.flagos.current_stream() == torch.flagos.default_stream())
        )
        thread.start()
        thread.join(30)
    assert seen == [True]


def test_streams_have_numbers_of_their_own() -> None:
    streams = [torch.flagos.Stream() for _ in range(8)]
    assert len({s.stream_id for s in streams}) == 8
    assert 0 not in {s.stream_id for s in streams}
    assert len(set(streams)) == 8
    assert all(isinstance(s, torch.Stream) for s in streams)
    assert all(s.device == torch.device("flagos", 0) for s in streams)
    again = torch.flagos.Stream(
        stream_id=streams[3].stream_id, device_index=0, device_type=streams[3].device_type
    )
    assert again == streams[3]
    generic = torch.Stream(device="flagos")
    assert generic.device == torch.device("flagos", 0), "the index is resolved"
    with generic:
        assert torch.ones(1, device="flagos").item() == 1.0
    low, high = torch.flagos.Stream.priority_range()
    assert high < low
    for _ in range(200):  # more than there are in the pool
        with torch.flagos.stream(torch.flagos.Stream(priority=high)):
            assert (torch.ones(2, device="flagos") + 1).sum().item() == 4.0


def test_out_over_an_operand_is_refused_beside_other_streams_too() -> None:
    with torch.flagos.stream(torch.flagos.Stream()):
        torch.ones(3, device="flagos").sum().item()
    for _ in range(2):
        x = torch.ones(4, device="flagos")
        torch.cat([torch.ones(2, device="flagos"), torch.ones(2, device="flagos")], out=x)
        with pytest.raises(RuntimeError, match="unsupported operation"):
            torch.cat([x[:2], torch.ones(2, device="flagos")], out=x)
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            torch.ones(4, 1, device="flagos").logical_and_(torch.ones(4, 4, device="flagos"))
        grown = torch.add(x, 1, out=torch.empty(0, device="flagos"))
        assert grown.tolist() == [2, 2, 2, 2]


def test_a_made_up_stream_is_refused() -> None:
    real = torch.flagos.Stream()
    for made_up in ((1000, 0), (1, 0), (-1, 0), (2**40, 0), (real.stream_id, 1)):
        with pytest.raises(RuntimeError, match=f"has no stream {made_up[0]};"):
            torch.flagos.Stream(
                stream_id=made_up[0], device_index=made_up[1], device_type=real.device_type
            ).synchronize()
    real.synchronize()
    assert torch.ones(2, device="flagos").tolist() == [1, 1]


def test_events_measure_time() -> None:
    producer = SlowProducer()
    first, second = torch.flagos.Event(enable_timing=True), torch.flagos.Event(enable_timing=True)
    with pytest.raises((RuntimeError, ValueError)):
        first.elapsed_time(second)
    stream = torch.flagos.Stream()
    first.record(stream)
    began = time.monotonic()
    producer.run(stream)
    second.record(stream)
    second.synchronize()
    upper = 1000 * (time.monotonic() - began)
    assert 0.0 < first.elapsed_time(second) <= upper + 50
    with pytest.raises((RuntimeError, ValueError)):
        torch.flagos.Event().elapsed_time(second)
    generic = torch.Event(device="flagos", enable_timing=True)
    generic.record()
    generic.synchronize()
    assert generic.query()
    with pytest.raises(NotImplementedError, match="interprocess"):
        torch.flagos.Event(interprocess=True)


def test_many_events_cost_nothing_to_keep() -> None:
    events = [torch.flagos.Event() for _ in range(5000)]
    for event in events[::2]:
        event.record()
    torch.flagos.synchronize()
    assert all(event.query() for event in events)


def test_memory_of_a_recorded_stream_is_not_reused() -> None:
    for _ in range(3):
        producer = SlowProducer()
        slow = torch.flagos.Stream()
        expected = torch.arange(200_000, device="flagos")
        source = expected.clone()
        torch.flagos.synchronize()
        producer.run(slow)
        with torch.flagos.stream(slow):
            copy = source + 0
        source.record_stream(slow)
        del source  # before the slow stream read it
        for _ in range(20):
            torch.full((200_000,), -1, device="flagos")
        slow.synchronize()
        assert torch.equal(copy, expected)


def test_a_stream_of_another_device_may_be_recorded() -> None:
    source = torch.ones(4, device="flagos:0")
    for stream in (torch.flagos.current_stream(1), torch.flagos.Stream(device="flagos:2")):
        source.record_stream(stream)
    del source
    torch.flagos.synchronize()  # answered only where the session takes what the freeing wrote
    assert torch.ones(4, device="flagos:1").tolist() == [1] * 4


def test_a_blocking_read_waits_for_the_current_stream() -> None:
    producer = SlowProducer()
    stream = torch.flagos.Stream()
    producer.run(stream)
    with torch.flagos.stream(stream):
        assert producer.target.cpu().min().item() == pytest.approx(1.0, abs=1e-4)
    torch.flagos.synchronize()


def test_what_a_stream_is_and_how_urgent() -> None:
    assert isinstance(torch.Stream("flagos:1"), torch.flagos.Stream)
    assert isinstance(torch.flagos.Stream(1), torch.flagos.Stream)
    assert not isinstance(torch.Event("flagos"), torch.flagos.Stream)
    low, high = torch.flagos.Stream.priority_range()
    urgent = torch.flagos.Stream(2, priority=high)
    assert urgent.priority == high
    assert torch.flagos.Stream(2).priority == 0
    assert torch.flagos.Stream(priority=high - 100).priority == high
    with torch.flagos.stream(urgent):
        assert torch.flagos.current_stream(2).priority == high
    assert torch.flagos.default_stream(2).priority == 0
    assert low == 0
