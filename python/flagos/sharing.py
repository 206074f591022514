# SPDX-License-Identifier: Apache-2.0
"""Tensors in other hands: DLPack, which cannot have them, and torch.multiprocessing, which can.

DLPack hands on an address. The memory of a device of flagos is another process's, and an address of it
means nothing to whoever would read there. What a process can be given is a descriptor of the memory, which
its own session then uses: nothing is copied but, once, within the device.
"""

import functools
import os
import threading
import weakref
from collections.abc import Callable
from multiprocessing import context, reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn

import torch
import torch.multiprocessing
import torch.utils.dlpack
from torch.multiprocessing.reductions import StorageWeakRef, shared_cache, storage_from_cache

from flagos.device import device_count, get_device_properties

_NO_DLPACK = (
    "a tensor of device {device} cannot be handed on through DLPack: its memory belongs to another process "
    "and cannot be read here. Copy it first: tensor.cpu()"
)
_NO_DEVICE = (
    "a tensor came from device {uuid} ({name}), which this process's session does not have; "
    "give both processes that device, or send a copy: tensor.cpu()"
)


def install() -> None:
    """Once a process."""
    tensor: Any = torch.Tensor
    for name in ("__dlpack__", "__dlpack_device__"):
        setattr(tensor, name, _refusing(getattr(tensor, name)))
    modules: tuple[Any, ...] = (torch, torch.utils.dlpack)
    for module in modules:
        module.to_dlpack = _refusing(module.to_dlpack)
    # Whatever has elements comes down to this: tensors, parameters, models.
    ForkingPickler.register(torch.UntypedStorage, _sending(torch.multiprocessing.reductions.reduce_storage))


def _refusing(export: Callable[..., Any]) -> Callable[..., Any]:
    """`export` for all tensors but those of flagos, which raise BufferError, as DLPack wants it."""

    @functools.wraps(export)
    def call(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if tensor.device.type == "flagos":
            raise BufferError(_NO_DLPACK.format(device=tensor.device))
        return export(tensor, *args, **kwargs)

    return call


def _sending(reduce: Callable[[torch.UntypedStorage], Any]) -> Callable[[torch.UntypedStorage], Any]:
    """`reduce` for all storages but those of flagos, which are sent by descriptor.

    multiprocessing.Queue pickles in a thread of its own, where an error would be printed and the receiver
    would wait for good: there the error is sent instead, and raised by the receiver's get().
    """

    @functools.wraps(reduce)
    def call(storage: torch.UntypedStorage) -> Any:
        if storage.device.type != "flagos":
            return reduce(storage)
        try:
            return _send(storage)
        except (RuntimeError, OSError) as error:
            if threading.current_thread().name == "QueueFeederThread":
                return _refuse, (str(error),)
            raise

    return call


def _send(storage: torch.UntypedStorage) -> Any:
    device = storage.device
    properties = get_device_properties(device)
    if storage.nbytes() == 0:
        return _receive_empty, (properties.uuid, properties.name)
    whole = torch.empty(0, dtype=torch.uint8, device=device).set_(storage)
    descriptor, *place = torch.ops.flagos._export_storage(whole)
    shared_cache[_key(place)] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
    popen = context.get_spawning_popen()
    if popen is None:
        try:
            parcel = reduction.DupFd(descriptor)
        finally:
            os.close(descriptor)
    else:
        # The new process inherits it, when it is started: later than here.
        held = _hold(storage, _key(place), descriptor)
        popen.__dict__.setdefault("_flagos_descriptors", []).append(held)
        parcel = reduction.DupFd(held.number)
    return _receive, (parcel, place, properties.uuid, properties.name)


class _Descriptor:
    """Open as long as somebody holds it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


_held: weakref.WeakValueDictionary[tuple[Any, ...], _Descriptor] = weakref.WeakValueDictionary()


def _hold(storage: torch.UntypedStorage, key: tuple[Any, ...], number: int) -> _Descriptor:
    """One descriptor of the storage for all new processes, and as long as the storage lives."""
    held = _held.get(key)
    if held is not None:
        os.close(number)
        return held
    held = _held[key] = _Descriptor(number)
    weakref.finalize(storage, lambda _: None, held)
    return held


def _receive(parcel: Any, place: list[int], uuid: str, name: str) -> torch.UntypedStorage:
    descriptor = parcel.detach()
    try:
        # What this process has already, perhaps its own, is the same storage again.
        known: torch.UntypedStorage | None
        known = storage_from_cache(torch.UntypedStorage, _key(place))  # type: ignore[no-untyped-call]
        if known is not None and known.nbytes() == place[2]:
            return known
        whole = torch.ops.flagos._import_storage(descriptor, place, _device_of(uuid, name))
    finally:
        os.close(descriptor)
    storage: torch.UntypedStorage = whole.untyped_storage()
    shared_cache[_key(place)] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
    return storage


def _receive_empty(uuid: str, name: str) -> torch.UntypedStorage:
    device = torch.device("flagos", _device_of(uuid, name))
    return torch.UntypedStorage(0, device=device)  # type: ignore[no-untyped-call]


def _key(place: list[int]) -> tuple[Any, ...]:
    """Of shared_cache: what memory, and where in it."""
    _, offset, _, *identity = place
    return ("flagos", *identity, offset)


def _device_of(uuid: str, name: str) -> int:
    for index in range(device_count()):
        if get_device_properties(index).uuid == uuid:
            return index
    raise RuntimeError(_NO_DEVICE.format(uuid=uuid, name=name))


def _refuse(message: str) -> NoReturn:
    raise RuntimeError(message)
