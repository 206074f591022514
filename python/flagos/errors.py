# SPDX-License-Identifier: Apache-2.0
"""Errors of the device that a program may want to tell apart."""

from typing import Any

import torch

from flagos import _client

_CODE = "error_code"


class DeviceLostError(torch.AcceleratorError):
    """The process that computed for this one is gone; its message tells how and at which operator.

    Tensors of the device are lost with it and every later call raises this error at once. Other sessions
    are not affected. Start the program again (from its last checkpoint) to go on.
    """


def install() -> None:
    """Makes PyTorch raise DeviceLostError where the client reports a lost device.

    The client is C++ and can only throw c10::AcceleratorError. PyTorch turns that into
    torch.AcceleratorError and then sets its error_code; setting ours gives the object its precise class, so
    that ``except flagos.DeviceLostError`` works (an ``__instancecheck__`` would not be asked there). Errors
    of other accelerators are left as they are.
    """

    lost = _client.device_lost_code()

    def get(error: BaseException) -> Any:
        try:
            return error.__dict__[_CODE]
        except KeyError:
            raise AttributeError(f"{type(error).__name__!r} object has no attribute {_CODE!r}") from None

    def set_(error: BaseException, code: object) -> None:
        error.__dict__[_CODE] = code
        if code == lost and type(error) is torch.AcceleratorError:
            error.__class__ = DeviceLostError

    if not hasattr(torch.AcceleratorError, _CODE):
        torch.AcceleratorError.error_code = property(get, set_)  # type: ignore[attr-defined]
