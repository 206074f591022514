# SPDX-License-Identifier: Apache-2.0
"""Streams and events; part of torch.flagos.

A stream is an order of work on one device: what is issued to one runs in order, what is issued to two runs
in any, unless one waits for the other. The current stream belongs to the thread and the device. New streams
come from a pool of 32 a device and priority, which hands them out in turn; events cost nothing until they
are recorded, and waiting for one that was not returns at once.
"""

from types import TracebackType
from typing import Any, Self

import torch

from flagos import _client
from flagos.device import Device, _check_index, _get_device_index

_PRIVATE_USE_1 = 20  # c10::DeviceType::PrivateUse1
_DEFAULT_STREAM = 0


# What streams were made with, by device and number: PyTorch does not tell. The pool makes them few.
_priorities: dict[tuple[int, int], int] = {}


class _StreamType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Stream) and instance.device.type == "flagos"


class Stream(torch.Stream, metaclass=_StreamType):
    """A new stream of `device`; smaller priorities are more urgent.

    With ``stream_id=``, ``device_index=`` and ``device_type=`` it is another object for a stream that exists.
    A torch.Stream of device flagos is an instance too.
    """

    def __new__(cls, device: Device = None, priority: int = 0, **existing: Any) -> Self:
        if existing:
            return super().__new__(cls, priority=priority, **existing)
        index = _check_index(_get_device_index(device, optional=True))
        made = super().__new__(cls, device=torch.device("flagos", index), priority=priority)
        low, high = _client.stream_priority_range()
        _priorities[index, made.stream_id] = min(max(priority, high), low)
        return made

    @property
    def priority(self) -> int:
        """What the stream was made with, within priority_range(); 0 for those made by torch.Stream()."""
        return _priorities.get((self.device_index, self.stream_id), 0)

    @property
    def flagos_stream(self) -> int:
        """The stream's number in this session; there is no address behind it."""
        return self.stream_id

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority."""
        return _client.stream_priority_range()

    def __repr__(self) -> str:
        return f"<torch.flagos.Stream device=flagos:{self.device_index} stream_id={self.stream_id}>"


class _EventType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Event) and instance.device.type == "flagos"


class Event(torch.Event, metaclass=_EventType):
    """A point in a stream's order: recorded there, waited for by other streams and by the host.

    With `enable_timing` two recorded events tell the milliseconds between them; `blocking` is accepted for
    compatibility (waiting never keeps a core busy for long). Events are not shared between processes.

    Makes a torch.Event: PyTorch's own functions that take two events take no others.
    """

    def __new__(  # type: ignore[misc]
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:
        if interprocess:
            raise NotImplementedError(
                "events of flagos cannot be shared between processes: use interprocess=False"
            )
        return torch.Event(device="flagos", enable_timing=enable_timing, blocking=blocking)


class StreamContext:
    """Context in which `stream` and its device are current; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._previous: torch.Stream | None = None
        self._previous_device = -1

    def __enter__(self) -> torch.Stream | None:
        if self.stream is not None:
            self._previous_device = _client.current_device()
            self._previous = current_stream(self.stream.device_index)
            set_stream(self.stream)
        return self.stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            set_stream(self._previous)
            _client.set_device(self._previous_device)


def stream(stream: torch.Stream | None) -> StreamContext:
    """``with torch.flagos.stream(s):`` issues to `s` what is issued inside."""
    return StreamContext(stream)


def current_stream(device: Device = None) -> Stream:
    """This thread's current stream of `device`."""
    found = torch._C._accelerator_getStream(_check_index(_get_device_index(device, optional=True)))
    return _existing(found.stream_id, found.device_index)


def default_stream(device: Device = None) -> Stream:
    """The stream that is current where none was chosen."""
    return _existing(_DEFAULT_STREAM, _check_index(_get_device_index(device, optional=True)))


def set_stream(stream: torch.Stream | None) -> None:
    """Makes `stream` current, and its device; None changes nothing. ``with stream(...)`` restores the old
    ones."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    """set_stream() for compiled code."""
    set_stream(Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))


def _get_raw_stream(device_index: int) -> int:
    """The current stream's number, for compiled code that passes it on."""
    return torch._C._accelerator_getStream(device_index).stream_id


def _existing(stream_id: int, device_index: int) -> Stream:
    return Stream(stream_id=stream_id, device_index=device_index, device_type=_PRIVATE_USE_1)
