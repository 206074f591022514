# SPDX-License-Identifier: Apache-2.0
"""torch.flagos.FloatTensor and its kin, as torch.cuda has them: names for a type of element on the device.

``isinstance(t, torch.flagos.FloatTensor)`` asks for both; ``t.type(torch.flagos.FloatTensor)`` moves and
converts; called, one makes a tensor; torch.set_default_tensor_type() takes the floating-point ones.
"""

from collections.abc import Callable
from typing import Any

import torch


class TensorType(type):
    """The type of these types. `dtype` is the element's."""

    dtype: torch.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, torch.Tensor)
            and instance.dtype == cls.dtype
            and instance.device.type == "flagos"
            and instance.layout == torch.strided
        )

    def __call__(cls, *args: Any, device: Any = "flagos") -> torch.Tensor:
        """An uninitialized tensor of the sizes given, or a tensor of the data given; empty without either."""
        if len(args) == 1 and not isinstance(args[0], (int, torch.Size)):
            return torch.tensor(args[0], dtype=cls.dtype, device=device)
        sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else (args or (0,))
        return torch.empty(*sizes, dtype=cls.dtype, device=device)

    def __repr__(cls) -> str:
        return f"<class {cls.__name__!r}>"


def _tensor_type(name: str, dtype: torch.dtype) -> TensorType:
    members = {
        "__doc__": f"Tensors of {dtype} on device flagos.",
        "__module__": "torch.flagos",
        "__qualname__": name,
        "dtype": dtype,
    }
    # Tensor.type() reads the name, in full.
    return TensorType(f"torch.flagos.{name}", (), members)


TYPES = {
    name: _tensor_type(name, dtype)
    for name, dtype in (
        ("FloatTensor", torch.float32),
        ("DoubleTensor", torch.float64),
        ("HalfTensor", torch.float16),
        ("BFloat16Tensor", torch.bfloat16),
        ("LongTensor", torch.int64),
        ("IntTensor", torch.int32),
        ("ShortTensor", torch.int16),
        ("CharTensor", torch.int8),
        ("ByteTensor", torch.uint8),
        ("BoolTensor", torch.bool),
    )
}
"""By name: what torch.flagos has."""

_set_default_tensor_type: Callable[[Any], None] = torch._C._set_default_tensor_type
_is_default = False


def _set_default(t: Any) -> None:
    """What torch.set_default_tensor_type() calls, which takes these types too: flagos becomes the default
    device and `t`'s the default dtype, until a type of the CPU is set."""
    global _is_default
    if isinstance(t, TensorType):
        if not t.dtype.is_floating_point:
            raise TypeError(f"only floating-point types are supported as the default type, not {t.__name__}")
        torch.set_default_dtype(t.dtype)
        torch.set_default_device("flagos")
        _is_default = True
        return
    _set_default_tensor_type(t)
    if _is_default:
        torch.set_default_device(None)
        _is_default = False


# Whoever names one of these types has imported this module.
torch._C.__dict__["_set_default_tensor_type"] = _set_default
