# SPDX-License-Identifier: Apache-2.0
"""The client library's functions, typed: ``torch.ops.flagos.*`` of libflagos_client.so.

Each is a thin call into C++ and says here only what Python has to know. Those that need the device raise
RuntimeError where there is none, DeviceLostError once it is lost, and RuntimeError in a forked child of a
process that uses it.
"""

import json
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch

if TYPE_CHECKING:
    from flagos.explain import OperatorFigures
    from flagos.kernels import KernelLibrary

_ops: Any = torch.ops.flagos


class MemoryStats(NamedTuple):
    """One device's figures as this session sees them, in bytes and counts; zeros before the first use."""

    allocated: int
    reserved: int
    peak_allocated: int
    peak_reserved: int
    allocations: int
    frees: int
    device_allocations: int
    device_frees: int
    retries: int
    total: int
    free: int
    quota: int


def register() -> None:
    """Registers hooks, guard, allocators and kernels with PyTorch. Once a process; connects to nothing."""
    _ops._register()


def device_lost_code() -> int:
    """The error_code of the torch.AcceleratorError that says that the device is lost."""
    lost, _fault = _ops._error_codes()
    return cast(int, lost)


def init() -> None:
    """Attaches to flagosd now; does nothing when attached."""
    _ops._init()


def is_initialized() -> bool:
    return cast(bool, _ops._is_initialized())


def in_bad_fork() -> bool:
    """Whether this is a forked child of a process that had attached."""
    return cast(bool, _ops._in_bad_fork())


def device_count() -> int:
    """0 where flagosd cannot be asked. Asked once, without a session; the answer holds as long as the
    process."""
    return cast(int, _ops._device_count())


def check_device(index: int) -> None:
    """RuntimeError, with the reason, where no device has this index."""
    _ops._check_device(index)


def current_device() -> int:
    return cast(int, _ops._current_device())


def set_device(index: int) -> None:
    _ops._set_device(index)


def exchange_device(index: int) -> int:
    """Makes `index` current unless it is negative; returns what was."""
    return cast(int, _ops._exchange_device(index))


def synchronize(index: int) -> None:
    """Waits, raises the first error, then warns of what was issued as if the caller's caller did."""
    for category, texts in zip((UserWarning, DeprecationWarning), _ops._synchronize(index), strict=True):
        for text in texts:
            warnings.warn(text, category, stacklevel=3)


def device_properties(index: int) -> tuple[str, int, int, int, int, str]:
    """Name, memory in bytes, multiprocessors, major and minor compute capability, UUID."""
    return cast("tuple[str, int, int, int, int, str]", _ops._device_properties(index))


def memory_stats(index: int) -> MemoryStats:
    return MemoryStats(*_ops._memory_stats(index))


def memory_info(index: int) -> tuple[int, int]:
    """Bytes free and in all, of the session's quota where it has one, else of the device; attaches."""
    free, total = _ops._memory_info(index)
    return free, total


def operator_figures() -> "list[OperatorFigures]":
    from flagos.explain import OperatorFigures

    asked, routed, libraries, kernel_calls = _ops._kernel_tallies()
    by_library = {
        name: (library, n) for name, library, n in zip(routed, libraries, kernel_calls, strict=True)
    }
    names, figures = _ops._tallies()
    causes = _ops._wait_names()
    width = len(causes) + 4
    found = []
    for i, name in enumerate(names):
        calls, *rest = figures[i * width : (i + 1) * width]
        waits = dict(zip(causes, rest[: len(causes)], strict=True))
        fallbacks, to_device, to_host = rest[len(causes) :]
        ran: dict[str, int] = {}
        if asked:
            library, count = by_library.get(name, ("", 0))
            if library:
                ran[library] = count
            if calls > count:
                ran["native"] = calls - count
        found.append(OperatorFigures(name, calls, waits, fallbacks, to_device, to_host, ran))
    return found


def kernel_libraries() -> "list[KernelLibrary]":
    from flagos.kernels import KernelLibrary

    names, descriptions, errors, counts, operators = _ops._kernel_libraries()
    found = []
    for name, description, error, count in zip(names, descriptions, errors, counts, strict=True):
        own, operators = operators[:count], operators[count:]
        found.append(KernelLibrary(name, description, tuple(own), error))
    return found


def reset_operator_figures() -> None:
    _ops._reset_tallies()


def reset_peak_memory_stats(index: int) -> None:
    _ops._reset_peak_memory_stats(index)


def empty_cache() -> None:
    _ops._empty_cache()


def default_generator(index: int) -> torch.Generator:
    return cast(torch.Generator, _ops._default_generator(index))


def stream_priority_range() -> tuple[int, int]:
    """The lowest and the highest priority; smaller numbers are more urgent."""
    low, high = _ops._stream_priority_range()
    return low, high


def session_info() -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(_ops._session_info()))
