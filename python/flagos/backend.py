# SPDX-License-Identifier: Apache-2.0
"""torch.flagos: this module under PyTorch's name, put together from those beside it."""

import os
import sys
from functools import partial, wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from flagos import (
    _client,
    amp,
    ending,
    memory,
    random,
    safetensors,
    sharing,
    streams,
    vendor_defaults,
)
from flagos.amp import get_amp_supported_dtype, is_bf16_supported
from flagos.device import (
    DeviceProperties,
    _exchange_device,
    _get_device_index,
    _lazy_init,
    _maybe_exchange_device,
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_initialized,
    session_info,
    set_device,
    synchronize,
)
from flagos.explain import explain, reset_explain
from flagos.kernels import kernel_libraries
from flagos.memory import (
    empty_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from flagos.random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from flagos.streams import (
    Event,
    Stream,
    StreamContext,
    _get_raw_stream,
    _set_stream_by_id,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DeviceProperties",
    "DoubleTensor",
    "Event",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "OutOfMemoryError",
    "ShortTensor",
    "Stream",
    "StreamContext",
    "_exchange_device",
    "_get_raw_stream",
    "_is_in_bad_fork",
    "_lazy_init",
    "_maybe_exchange_device",
    "_set_stream_by_id",
    "_utils",
    "amp",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "explain",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_memory_info",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "kernel_libraries",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "random",
    "reset_accumulated_memory_stats",
    "reset_explain",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "session_info",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]

# torch.load() looks for torch.<device>._utils._get_device_index.
_utils = SimpleNamespace(_get_device_index=_get_device_index)

# torch.manual_seed() passes over a device without it.
_is_in_bad_fork = _client.in_bad_fork


OutOfMemoryError = torch.OutOfMemoryError

if TYPE_CHECKING:
    from flagos.tensor_types import TensorType

    BFloat16Tensor: TensorType
    BoolTensor: TensorType
    ByteTensor: TensorType
    CharTensor: TensorType
    DoubleTensor: TensorType
    FloatTensor: TensorType
    HalfTensor: TensorType
    IntTensor: TensorType
    LongTensor: TensorType
    ShortTensor: TensorType


def __getattr__(name: str) -> Any:
    """`_initialized`: with it torch.utils.checkpoint knows that there are random numbers to restore. And
    FloatTensor and its kin, which few programs ask for."""
    if name == "_initialized":
        return is_initialized()
    if name.endswith("Tensor"):
        from flagos import tensor_types

        if name in tensor_types.TYPES:
            return tensor_types.TYPES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def install() -> None:
    """Makes this module torch.flagos, and gives tensors, modules and storages their .flagos() and .is_flagos.

    REQUIRES: the device is named flagos. Once a process.
    """
    torch._register_device_module("flagos", sys.modules[__name__])  # type: ignore[no-untyped-call]
    for part in (amp, memory, random, streams):
        sys.modules[f"torch.flagos.{part.__name__.rpartition('.')[2]}"] = part
    torch.utils.backend_registration.generate_methods_for_privateuse1_backend(for_storage=True)
    for part in (vendor_defaults, sharing, safetensors, ending):
        part.install()
    _install_data_parallel()
    if "FLAGOS_ALIAS_CUDA" in os.environ:
        from flagos import cuda_alias

        if cuda_alias.wanted():
            cuda_alias.install()


def _install_data_parallel() -> None:
    """flagos.data_parallel.install(), put off until torch.nn.parallel is used: few programs use it, and all
    would wait for it at `import torch`."""
    from torch.nn.parallel import DataParallel

    if hasattr(torch._C, "_scatter"):
        return
    original: Any = DataParallel.__init__

    def late(name: str, *args: Any) -> Any:
        from flagos import data_parallel

        data_parallel.install(original)
        return getattr(data_parallel, name)(*args)

    @wraps(original)
    def init(self: Any, *args: Any, **options: Any) -> None:
        from flagos import data_parallel

        data_parallel.install(original)
        DataParallel.__init__(self, *args, **options)

    for name in ("broadcast", "broadcast_coalesced", "broadcast_out", "gather", "gather_out", "scatter"):
        setattr(torch._C, f"_{name}", partial(late, f"_{name}"))
    torch._C._scatter_out = partial(late, "_scatter_out")
    DataParallel.__init__ = init  # type: ignore[method-assign]
