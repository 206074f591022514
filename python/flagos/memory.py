# SPDX-License-Identifier: Apache-2.0
"""Device memory as this session sees it; part of torch.flagos. All sizes are in bytes.

Figures come from the executor's allocator and are exact for everything that was issued before the call. In
a process that has not used the device they are zero, and asking attaches to nothing.
"""

from typing import Any, NoReturn

from flagos import _client
from flagos.device import Device, _check_index, _get_device_index

# What the counters read when reset_accumulated_memory_stats() was called last, by device.
_counted_from: dict[int, tuple[int, int]] = {}

_NOTHING = _client.MemoryStats(*[0] * len(_client.MemoryStats._fields))


def memory_stats(device: Device = None) -> dict[str, int]:
    """The allocator's figures.

    Live and peak bytes: ``allocated_bytes, reserved_bytes, peak_allocated_bytes, peak_reserved_bytes``.
    Counters since the start, which no reset changes: ``num_alloc_calls, num_free_calls``, of those that
    reached the device ``num_device_malloc, num_device_free``, and ``num_alloc_retries``. Beside them
    PyTorch's own names for the same figures, such as ``allocated_bytes.all.current``; of these
    ``allocation.all.allocated`` and ``allocation.all.freed`` count since reset_accumulated_memory_stats().
    """
    stats = _stats(device)
    allocated, freed = _counted_from.get(_get_device_index(device, optional=True), (0, 0))
    return {
        "allocated_bytes": stats.allocated,
        "reserved_bytes": stats.reserved,
        "peak_allocated_bytes": stats.peak_allocated,
        "peak_reserved_bytes": stats.peak_reserved,
        "num_alloc_calls": stats.allocations,
        "num_free_calls": stats.frees,
        "num_device_malloc": stats.device_allocations,
        "num_device_free": stats.device_frees,
        "num_alloc_retries": stats.retries,
        "allocated_bytes.all.current": stats.allocated,
        "allocated_bytes.all.peak": stats.peak_allocated,
        "reserved_bytes.all.current": stats.reserved,
        "reserved_bytes.all.peak": stats.peak_reserved,
        "allocation.all.current": stats.allocations - stats.frees,
        "allocation.all.allocated": stats.allocations - allocated,
        "allocation.all.freed": stats.frees - freed,
        "num_device_alloc": stats.device_allocations,
    }


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """memory_stats() with what stands between the dots of a name as a dictionary of its own:
    ``["allocated_bytes"]["all"]["current"]``. What has no dot is there where it is in no dictionary's way."""
    nested: dict[str, Any] = {}
    stats = memory_stats(device)
    for name, value in sorted(stats.items(), key=lambda item: "." not in item[0]):
        *path, last = name.split(".")
        inner = nested
        for part in path:
            inner = inner.setdefault(part, {})
        inner.setdefault(last, value)
    return nested


def memory_allocated(device: Device = None) -> int:
    """Bytes that live tensors occupy."""
    return _stats(device).allocated


def memory_reserved(device: Device = None) -> int:
    """Bytes that the allocator holds: those of live tensors and those it keeps for the next ones."""
    return _stats(device).reserved


def max_memory_allocated(device: Device = None) -> int:
    """The most that memory_allocated() was since the start or the last reset_peak_memory_stats()."""
    return _stats(device).peak_allocated


def max_memory_reserved(device: Device = None) -> int:
    """The most that memory_reserved() was since the start or the last reset_peak_memory_stats()."""
    return _stats(device).peak_reserved


def reset_peak_memory_stats(device: Device = None) -> None:
    """Starts the peaks anew from what is live now. Counters go on."""
    index = _get_device_index(device, optional=True)
    if _client.is_initialized():
        _client.reset_peak_memory_stats(_check_index(index))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Starts ``allocation.all.allocated`` and ``allocation.all.freed`` of memory_stats() anew. The session's
    own counters, which torch.accelerator and flagosctl show, go on."""
    stats = _stats(device)
    _counted_from[_get_device_index(device, optional=True)] = (stats.allocations, stats.frees)


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> NoReturn:
    """NotImplementedError: how much memory a session may use is for flagosd to say, not for the program."""
    raise NotImplementedError(
        "a program cannot limit its own memory on flagos: the device's memory is shared out by flagosd. "
        "Limit what the vendor offers in flagosd's configuration"
    )


def memory_snapshot(*args: Any, **options: Any) -> NoReturn:
    """NotImplementedError: the allocator is the executor's, and tells sums alone."""
    raise NotImplementedError(
        "flagos has no memory snapshots: the allocator is in the executor and tells sums alone. "
        "Use torch.flagos.memory_stats()"
    )


def empty_cache() -> None:
    """Gives memory that the allocator keeps but no tensor uses back to the device, on every device."""
    if _client.is_initialized():
        _client.empty_cache()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes for this session: of its quota where it has one, else of the device. Attaches."""
    return _client.memory_info(_check_index(_get_device_index(device, optional=True)))


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """memory_stats() for people; with `abbreviated` the bytes and not the counters."""
    stats = memory_stats(device)
    rows = [
        (name, f"{value:,}")
        for name, value in stats.items()
        if "." not in name and (name.endswith("_bytes") or not abbreviated)
    ]
    width = max(len(value) for _, value in rows)
    return "\n".join(f"{name:<22} {value:>{width}}" for name, value in rows)


def _stats(device: Device) -> _client.MemoryStats:
    index = _get_device_index(device, optional=True)
    if not _client.is_initialized():
        return _NOTHING
    return _client.memory_stats(_check_index(index))


# PyTorch's other name.
get_memory_info = mem_get_info
