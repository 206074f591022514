# SPDX-License-Identifier: Apache-2.0
"""torch.nn.DataParallel on several devices of flagos, and as it was on the CPU.

PyTorch writes DataParallel in Python over seven functions of C++ that exist in builds for CUDA alone. Here
they are, made of ordinary copies; gradients are PyTorch's own business, above them.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn.parallel import DataParallel, comm

from flagos.device import current_device, device_count
from flagos.streams import stream

_UNDECIDED = "_flagos_undecided"


def install(init: Callable[..., None]) -> None:
    """Completes torch.nn.parallel, where `init` is PyTorch's DataParallel.__init__; does nothing when called
    again. REQUIRES a build without the functions for CUDA."""
    if getattr(torch._C, "_scatter", None) is _scatter:
        return
    for function in (
        _broadcast,
        _broadcast_coalesced,
        _broadcast_out,
        _gather,
        _gather_out,
        _scatter,
        _scatter_out,
    ):
        setattr(torch._C, function.__name__, function)
    # It would warn, at each backward pass, that there is no NCCL.
    comm.__dict__["nccl"] = SimpleNamespace(is_available=lambda tensors: False)
    parallel: Any = DataParallel
    parallel.__init__ = _init_with(init)
    parallel.forward = _forward_with(parallel.forward)
    parallel.parallel_apply = _parallel_apply_with(parallel.parallel_apply)


def _device(index: int | None) -> torch.device:
    """The device that torch.nn.parallel means: -1 is the CPU, None the current device."""
    if index is None:
        return torch.device("flagos", current_device())
    return torch.device("cpu") if index < 0 else torch.device("flagos", index)


def _broadcast(tensor: torch.Tensor, devices: Sequence[int]) -> list[torch.Tensor]:
    """`tensor` on each device; itself, sharing its memory, where that is its own."""
    return [tensor.detach().to(_device(index), non_blocking=True) for index in devices]


def _broadcast_out(tensor: torch.Tensor, out: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    for target in out:
        target.copy_(tensor, non_blocking=True)
    return out


def _broadcast_coalesced(
    tensors: Sequence[torch.Tensor], devices: Sequence[int], buffer_size: int
) -> list[list[torch.Tensor]]:
    """The tensors on each device, by device. Calls do not wait, so that one large copy would gain little:
    `buffer_size` is not used."""
    copies = [_broadcast(tensor, devices) for tensor in tensors]
    return [[copy[i] for copy in copies] for i in range(len(devices))]


def _scatter(
    tensor: torch.Tensor,
    devices: Sequence[int],
    chunk_sizes: Sequence[int] | None,
    dim: int,
    streams: Sequence[torch.Stream | None] | None,
) -> list[torch.Tensor]:
    """Chunks of `tensor`, one a device, copied on that device's stream of `streams`; equal ones, and fewer
    than devices where `tensor` is short, without `chunk_sizes`."""
    if chunk_sizes is None:
        chunks = tensor.chunk(len(devices), dim)
    else:
        chunks = tensor.split_with_sizes(list(chunk_sizes), dim)
    if chunk_sizes is not None and len(chunks) != len(devices):
        raise RuntimeError(f"expected one chunk a device, but got {len(chunks)} for {len(devices)} devices")
    parts = []
    for i, (chunk, index) in enumerate(zip(chunks, devices, strict=False)):
        with stream(streams[i] if streams else None):
            parts.append(chunk.to(_device(index), non_blocking=True))
    return parts


def _scatter_out(
    tensor: torch.Tensor,
    out: Sequence[torch.Tensor],
    dim: int,
    streams: Sequence[torch.Stream | None] | None,
) -> Sequence[torch.Tensor]:
    """The same into `out`, whose sizes decide the chunks."""
    chunks = tensor.split_with_sizes([target.size(dim) for target in out], dim)
    for i, (chunk, target) in enumerate(zip(chunks, out, strict=True)):
        with stream(streams[i] if streams else None):
            target.copy_(chunk, non_blocking=True)
    return out


def _gather(tensors: Iterable[torch.Tensor], dim: int, destination: int | None) -> torch.Tensor:
    """The tensors one after the other along `dim`, on `destination`."""
    device = _device(destination)
    return torch.cat([tensor.to(device) for tensor in tensors], dim)


def _gather_out(tensors: Iterable[torch.Tensor], out: torch.Tensor, dim: int) -> torch.Tensor:
    """The same into `out`."""
    parts = [tensor.to(out.device) for tensor in tensors]
    if sum(part.size(dim) for part in parts) != out.size(dim):
        raise RuntimeError(
            f"expected out to have size {sum(part.size(dim) for part in parts)} in dimension {dim}, "
            f"but got {out.size(dim)}"
        )
    return torch.cat(parts, dim, out=out)


def _device_types(module: torch.nn.Module) -> set[str]:
    return {tensor.device.type for tensor in chain(module.parameters(), module.buffers())}


def _init_with(original: Callable[..., None]) -> Callable[..., None]:
    def init(
        self: Any, module: torch.nn.Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        """A module on the CPU stays there unless devices are named: to use the CPU was the choice of a
        program that never asked for flagos. Moved to flagos later, it takes all devices."""
        undecided = (
            device_ids is None
            and output_device is None
            and _device_types(module) <= {"cpu"}
            and torch._utils._get_available_device_type() == "flagos"  # type: ignore[no-untyped-call]
        )
        if not undecided:
            original(self, module, device_ids, output_device, dim)
            return
        torch.nn.Module.__init__(self)
        self.module, self.device_ids, self.dim = module, [], dim
        setattr(self, _UNDECIDED, True)

    init.__wrapped__ = original  # type: ignore[attr-defined]  # the signature of a DataParallel
    return init


def _forward_with(original: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        if self.__dict__.get(_UNDECIDED) and "flagos" in _device_types(self.module):
            setattr(self, _UNDECIDED, False)
            self.device_ids = list(range(device_count()))
            self.output_device = self.device_ids[0]
            self.src_device_obj = _device(self.device_ids[0])
        return original(self, *inputs, **kwargs)

    return forward


def _parallel_apply_with(original: Callable[..., Any]) -> Callable[..., Any]:
    def parallel_apply(self: Any, replicas: Sequence[Any], inputs: Any, kwargs: Any) -> Any:
        """Each replica runs in a thread of its own, to which PyTorch hands on autocast for cuda alone."""
        if torch.is_autocast_enabled("flagos"):
            dtype, cached = torch.get_autocast_dtype("flagos"), torch.is_autocast_cache_enabled()
            for replica in replicas:
                context = torch.autocast("flagos", dtype=dtype, cache_enabled=cached)
                replica.forward = context(replica.forward)  # a replica lives for this call
        return original(self, replicas, inputs, kwargs)

    return parallel_apply
