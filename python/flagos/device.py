# SPDX-License-Identifier: Apache-2.0
"""Devices: how many, which one is current, what they are; part of torch.flagos.

The current device belongs to the thread. Choosing it, like everything in this module but init() and, where
flagosd is embedded, the properties of a device, attaches to nothing.
"""

from types import TracebackType
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

import torch

from flagos import _client

Device: TypeAlias = torch.device | str | int | None
"""A device of flagos as PyTorch's functions take one; None, and a device without an index, mean the current
one."""

SPELLINGS = {"flagos", "privateuseone"}
"""The names of the device: what may stand before the colon. FLAGOS_ALIAS_CUDA adds one."""


class _Reported(NamedTuple):
    name: str
    total_memory: int
    multi_processor_count: int
    major: int
    minor: int
    uuid: str


class DeviceProperties(_Reported):
    """What a device is. `total_memory` is in bytes; a capability of 0.0 means that the vendor counts none.

    What else torch.cuda's properties have is None: vendors of flagosd do not report it.
    """

    L2_cache_size = None
    clock_rate = None
    gcnArchName = None  # noqa: N815  (PyTorch's name)
    is_integrated = None
    is_multi_gpu_board = None
    max_threads_per_block = None
    max_threads_per_multi_processor = None
    memory_bus_width = None
    memory_clock_rate = None
    pci_bus_id = None
    pci_device_id = None
    pci_domain_id = None
    regs_per_multiprocessor = None
    shared_memory_per_block = None
    shared_memory_per_block_optin = None
    shared_memory_per_multiprocessor = None
    warp_size = None


def is_available() -> bool:
    """Whether there is a device to use. Never raises; asks flagosd at most once in a process and opens no
    session."""
    return _client.device_count() > 0


def device_count() -> int:
    """The number of devices, 0 where flagosd cannot be reached. Fixed at the first call in a process."""
    return _client.device_count()


# Constants to torch.compile. What torch.compiler.assume_constant_result() does, which imports the compiler.
is_available._dynamo_marked_constant = True  # type: ignore[attr-defined]
device_count._dynamo_marked_constant = True  # type: ignore[attr-defined]


def init() -> None:
    """Attaches to flagosd now instead of at the first use of the device. Does nothing when attached.

    Raises RuntimeError that says what is in the way: no flagosd, no device, no protocol version in common ...
    """
    from flagos import random

    random.apply_pending_seed()
    _client.init()


def is_initialized() -> bool:
    """Whether this process is attached."""
    return _client.is_initialized()


def current_device() -> int:
    """Index of this thread's current device."""
    if torch.compiler.is_dynamo_compiling():
        # Which compiled code takes as a constant for as long as it holds.
        return torch.accelerator.current_device_index()
    return _client.current_device()


def set_device(device: Device) -> None:
    """Makes `device` this thread's current one; a negative index changes nothing.

    Raises RuntimeError for an index that no device has. ``with torch.flagos.device(...)`` restores the old
    one.
    """
    index = _get_device_index(device)
    if index >= 0:
        _client.set_device(index)


def synchronize(device: Device = None) -> None:
    """Waits until everything that was issued to `device` is done, and raises the first error of it.

    Does nothing in a process that has not used the device. The current device stays what it is.
    """
    index = _get_device_index(device, optional=True)
    if _client.is_initialized() or _client.in_bad_fork():
        _client.synchronize(_check_index(index))


def get_device_properties(device: Device = None) -> DeviceProperties:
    """What `device` is. Attaches where flagosd is embedded, which alone knows; else opens no session."""
    index = _check_index(_get_device_index(device, optional=True))
    return DeviceProperties(*_client.device_properties(index))


def get_device_name(device: Device = None) -> str:
    """The vendor's name of `device`."""
    return get_device_properties(device).name


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """Major and minor compute capability of `device`; (0, 0) where the vendor counts none."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def session_info() -> dict[str, Any]:
    """What this process's session is: number and name, endpoint, vendor, executor's process id and torch,
    sizes of ring and arena. For people and bug reports; the keys may grow. Attaches to nothing."""
    return _client.session_info()


class device:  # noqa: N801  (PyTorch's name)
    """Context in which `device` is the thread's current one; None or a negative index changes nothing."""

    def __init__(self, device: Device) -> None:
        self.idx = -1 if device is None else _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _maybe_exchange_device(self.prev_idx)


class device_of(device):  # noqa: N801  (PyTorch's name)
    """Context in which the device of `obj`, a tensor or a storage, is current; no change where that is not
    flagos."""

    def __init__(self, obj: torch.Tensor | torch.UntypedStorage) -> None:
        ours = obj.device.type == "flagos"
        super().__init__(obj.device if ours else None)


def _get_device_index(device: Device | SupportsIndex, optional: bool = False) -> int:
    """The index that `device` names; with `optional` the current one where it names none.

    Strings are read here: torch.device counts in eight bits, in which flagos:256 is flagos:0. Whether there
    is such a device is for the caller to ask.
    """
    index: int | None
    if isinstance(device, bool):
        raise TypeError(f"a device of flagos is a torch.device, a string or an index, not {device}")
    if isinstance(device, str):
        kind, colon, digits = device.partition(":")
        # As PyTorch reads them: no sign, no space, no leading zero.
        written = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")
        if kind not in SPELLINGS or (colon and not written):
            raise ValueError(
                f"expected a device of flagos, such as 'flagos' or 'flagos:1', but got {device!r}"
            )
        index = int(digits) if colon else None
    elif isinstance(device, torch.device):
        if device.type not in SPELLINGS:
            raise ValueError(f"expected a device of flagos, but got {device}")
        index = device.index
    elif device is None:
        index = None
    elif hasattr(device, "__index__"):
        index = int(device)
    else:
        raise TypeError(
            f"a device of flagos is a torch.device, a string or an index, not {type(device).__name__}"
        )
    if index is not None:
        return index
    if not optional:
        raise ValueError(f"expected a device of flagos with an index, such as 'flagos:0', but got {device!r}")
    return current_device()


def _check_index(index: int) -> int:
    """`index` where a device has it, else RuntimeError with the reason."""
    _client.check_device(index)
    return index


def _exchange_device(index: int) -> int:
    """Makes `index` current and returns what was; -1 and no change for a negative one."""
    return -1 if index < 0 else _client.exchange_device(index)


def _maybe_exchange_device(index: int) -> int:
    """The same: devices of flagos have no contexts whose making could be put off."""
    return _exchange_device(index)


def _lazy_init() -> None:
    """Called by PyTorch's core before the process's first use of the device, from many places that compute
    nothing (the pin-memory thread of a DataLoader ...): so it attaches to nothing."""
    from flagos import random

    if _client.in_bad_fork():
        _client.init()  # raises
    random.apply_pending_seed()
