# SPDX-License-Identifier: Apache-2.0
"""``FLAGOS_ALIAS_CUDA=1``: programs written for device "cuda" run on device flagos as they are.

Off unless the variable is set, and without effect where PyTorch has a CUDA device of its own. "cuda" is then
another spelling of "flagos" wherever Python hands a device to PyTorch, and ``torch.cuda`` has the functions
of ``torch.flagos``. What comes back says flagos: ``torch.device("cuda", 1)`` is ``device("flagos", 1)``, so
that devices compare equal whichever way they were written.

PyTorch reads the name of a device in C++, where nothing can be put in between. So the functions and types
that take one are replaced by ones that translate it first, which costs the calls that can take a device 0.3
to 1 us. A TorchFunctionMode would cost every operator 2.5 us, and each thread would have to enter it.

REQUIRES that torch.device and the other types are taken from torch after `import torch`: a module that runs
before, in the middle of PyTorch's own import, keeps the type that knows no alias.
"""

import functools
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.utils import _device as default_device

from flagos import backend, streams
from flagos.device import SPELLINGS
from flagos.device import _get_device_index as _index_of

VARIABLE = "FLAGOS_ALIAS_CUDA"
_OFF = ("", "0", "off", "false", "no")

_Device = torch.device  # the type itself, under whatever name it is replaced
_MISSING = object()

_TENSOR_METHODS = (
    "is_pinned",
    "new_empty",
    "new_empty_strided",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
    "pin_memory",
    "to",
)
# Those that take a device and are not among what torch.set_default_device() applies to.
_OTHER_FACTORIES = (
    "empty_like",
    "full_like",
    "ones_like",
    "rand_like",
    "randint_like",
    "randn_like",
    "zeros_like",
    "from_file",
    "normal",
)
_AUTOCAST_FUNCTIONS = (
    "get_autocast_dtype",
    "is_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
)


def wanted() -> bool:
    """Whether the variable asks for the alias, and no CUDA device is there to be hidden by it."""
    return os.environ.get(VARIABLE, "").lower() not in _OFF and not torch.cuda.is_available()


def install() -> None:
    """Makes "cuda" mean flagos in this process. Once a process; REQUIRES wanted() and that torch.flagos is
    installed."""
    # Keeps the functions that __torch_function__ is called with, which are those before they are replaced.
    constructors = default_device._device_constructors()
    _replace_functions(constructors)
    _replace_types()
    _replace_methods()
    _replace_amp()
    _fill_torch_cuda()
    SPELLINGS.add("cuda")


def translate(device: Any) -> Any:
    """flagos for what names cuda, as a string or as a torch.device; anything else as it is."""
    if isinstance(device, str):
        if device == "cuda" or device.startswith("cuda:"):
            return "flagos" + device[4:]
    elif type(device) is _Device and device.type == "cuda":
        return _Device("flagos") if device.index is None else _Device("flagos", device.index)
    return device


def _keyword(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with its argument device=, which it takes by name alone, translated."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = translate(kwargs["device"])
        return function(*args, **kwargs)

    return call


def _anywhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with its device translated, wherever it stands."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs.keys() & {"device", "type"}:
            kwargs[name] = translate(kwargs[name])
        return function(*map(translate, args), **kwargs)

    return call


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """The method with its device translated, which is its first argument or a named one."""

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args:
            return function(self, translate(args[0]), *args[1:], **kwargs)
        if "device" in kwargs:
            kwargs["device"] = translate(kwargs["device"])
        return function(self, **kwargs)

    return call


def _replace(owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, wrap(original))


def _replace_functions(constructors: set[Any]) -> None:
    from torch.jit import _builtins

    def wrap(function: Any) -> Any:
        wrapped = _keyword(function)
        operator = _builtins._find_builtin(function)  # type: ignore[no-untyped-call]
        if operator is not None:  # TorchScript knows functions by identity
            _builtins._register_builtin(wrapped, operator)
        return wrapped

    for module in (torch, torch.fft, torch.nested):
        for name in dir(module):
            value = getattr(module, name)
            if callable(value) and not isinstance(value, type) and value in constructors:
                _replace(module, name, wrap)
    for name in _OTHER_FACTORIES:
        _replace(torch, name, wrap)


class _Alias(type):
    """Type of the classes that stand for one of PyTorch's types: equal to it, and with its instances."""

    original: type

    def __new__(mcls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> Any:
        """A program's `class Mine(torch.Generator)` is a subclass of the original."""
        if bases:
            originals = tuple(base.original if isinstance(base, _Alias) else base for base in bases)
            return type(originals[0])(name, originals, members)
        return super().__new__(mcls, name, bases, members)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.original)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.original)

    # Tables that are keyed by type are found by the type of an object, which is the original.
    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.original

    def __hash__(cls) -> int:
        return hash(cls.original)


def _replace_types() -> None:
    """torch.device, torch.Generator, torch.Stream and torch.Event: types of C, which cannot be changed."""
    for original in (torch.device, torch.Generator, torch.Stream, torch.Event):
        make = _anywhere(original)
        members: dict[str, Any] = {
            "__new__": lambda cls, *args, _make=make, **kwargs: _make(*args, **kwargs),
            "__doc__": original.__doc__,
            "__module__": "torch",
            "__qualname__": original.__name__,
            "original": original,
        }
        alias = _Alias(original.__name__, (), members)
        for name in dir(original):  # torch.Stream.synchronize ...
            if not name.startswith("__"):
                setattr(alias, name, getattr(original, name))
        setattr(torch, original.__name__, alias)


def _replace_methods() -> None:
    for name in _TENSOR_METHODS:
        _replace(torch.Tensor, name, _keyword if name.startswith("new_") else _method)
    _replace(torch.Tensor, "type", _type_method)
    holders: tuple[Any, ...] = (torch.Tensor, torch.UntypedStorage, torch.TypedStorage)
    for owner in holders:
        owner.cuda = owner.flagos  # which PyTorch generated
        owner.is_cuda = property(lambda self: self.device.type == "flagos")


def _type_method(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def type_(self: torch.Tensor, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
            dtype = dtype.replace("cuda", "flagos", 1)
        return original(self, dtype, *args, **kwargs)

    return type_


def _replace_amp() -> None:
    for name in _AUTOCAST_FUNCTIONS:
        _replace(torch, name, _of_device_type)
    _replace(torch.amp.autocast, "__init__", functools.partial(_initializer, argument="device_type"))
    _replace(torch.amp.GradScaler, "__init__", functools.partial(_initializer, argument="device"))
    for name in ("custom_fwd", "custom_bwd"):
        for owner in (torch.amp, torch.amp.autocast_mode):
            _replace(owner, name, _device_type_by_name)
    torch.get_autocast_gpu_dtype = lambda: torch.get_autocast_dtype("flagos")


def _of_device_type(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any) -> Any:
        # Without a device type PyTorch's functions mean cuda.
        if not args or not isinstance(args[0], str):
            args = ("flagos", *args)
        return original(translate(args[0]), *args[1:])

    return call


def _device_type_by_name(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, device_type: str, **kwargs: Any) -> Any:
        return original(*args, device_type=translate(device_type), **kwargs)

    return call


def _initializer(original: Callable[..., None], argument: str) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: Any, device: Any = _MISSING, *args: Any, **kwargs: Any) -> None:
        if device is _MISSING:
            device = kwargs.pop(argument, "cuda")
        original(self, translate(device), *args, **kwargs)

    return init


def _fill_torch_cuda() -> None:
    cuda: Any = torch.cuda
    modules: tuple[Any, ...] = (cuda, cuda.memory, cuda.random, cuda.streams)
    for name in backend.__all__:
        value = getattr(backend, name)
        if name == "_utils" or isinstance(value, ModuleType):
            continue  # torch.cuda's modules stay, with other functions
        setattr(cuda, name, value)
        for module in modules[1:]:
            if hasattr(module, name):
                setattr(module, name, value)
    cuda._utils._get_device_index = _get_device_index
    cuda._get_device_index = _get_device_index
    streams.Stream.cuda_stream = streams.Stream.flagos_stream  # type: ignore[attr-defined]
    # What a program asks about CUDA that is no function of torch.flagos, answered truthfully.
    cuda.can_device_access_peer = lambda device, peer_device: False
    cuda.get_arch_list = list
    cuda.get_gencode_flags = str
    cuda.ipc_collect = lambda: None
    cuda.is_tf32_supported = lambda: False
    cuda.is_current_stream_capturing = lambda: False
    for old, new in (
        ("memory_cached", "memory_reserved"),
        ("max_memory_cached", "max_memory_reserved"),
        ("reset_max_memory_allocated", "reset_peak_memory_stats"),
        ("reset_max_memory_cached", "reset_peak_memory_stats"),
    ):
        setattr(cuda, old, getattr(backend, new))
        setattr(cuda.memory, old, getattr(backend, new))
    sys.modules["torch.cuda"] = cuda


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """torch.cuda's function of this name: -1 for the CPU where `allow_cpu`."""
    if allow_cpu and (device == "cpu" or (isinstance(device, _Device) and device.type == "cpu")):
        return -1
    return _index_of(device, optional)
