# SPDX-License-Identifier: Apache-2.0
"""What cannot leave this process, and what says so: DLPack and torch.multiprocessing.

Both hand on the address or the descriptor of memory. The memory of a device of flagos is another process's,
and an address of it means nothing to whoever would read there.
"""

import functools
import threading
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn

import torch
import torch.multiprocessing
import torch.utils.dlpack

_NO_DLPACK = (
    "a tensor of device {device} cannot be handed on through DLPack: its memory belongs to another process "
    "and cannot be read here. Copy it first: tensor.cpu()"
)
_NO_SENDING = (
    "a tensor of device {device} cannot be sent to another process: its memory belongs to this process's "
    "session. Send a copy: tensor.cpu()"
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
    reduction = torch.multiprocessing.reductions.reduce_storage
    ForkingPickler.register(torch.UntypedStorage, _sending(reduction))


def _refusing(export: Callable[..., Any]) -> Callable[..., Any]:
    """`export` for all tensors but those of flagos, which raise BufferError, as DLPack wants it."""

    @functools.wraps(export)
    def call(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if tensor.device.type == "flagos":
            raise BufferError(_NO_DLPACK.format(device=tensor.device))
        return export(tensor, *args, **kwargs)

    return call


def _sending(reduce: Callable[[torch.UntypedStorage], Any]) -> Callable[[torch.UntypedStorage], Any]:
    """`reduce` for all storages but those of flagos, which raise RuntimeError.

    multiprocessing.Queue pickles in a thread of its own, where an error would be printed and the receiver
    would wait for good: there the error is sent instead, and raised by the receiver's get().
    """

    @functools.wraps(reduce)
    def call(storage: torch.UntypedStorage) -> Any:
        if storage.device.type != "flagos":
            return reduce(storage)
        message = _NO_SENDING.format(device=storage.device)
        if threading.current_thread().name == "QueueFeederThread":
            return _refuse, (message,)
        return _refuse(message)

    return call


def _refuse(message: str) -> NoReturn:
    raise RuntimeError(message)
