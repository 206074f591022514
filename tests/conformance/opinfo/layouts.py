# SPDX-License-Identifier: Apache-2.0
"""Samples in other layouts: the same shapes, other strides."""

from collections.abc import Callable
from typing import Any

import torch

Change = Callable[[torch.Tensor], torch.Tensor]


def strided(tensor: torch.Tensor) -> torch.Tensor:
    wide = torch.stack([tensor, tensor], -1)
    return wide[..., 0]


def expanded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.narrow(0, 0, 1).expand(tensor.shape) if tensor.dim() > 0 and len(tensor) > 1 else tensor


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    memory_format = formats.get(tensor.dim())
    return tensor.contiguous(memory_format=memory_format) if memory_format else tensor


LAYOUTS: tuple[Change, ...] = (strided, expanded, channels_last)


def changed(sample: Any, change: Change, *, integers: bool = True) -> Any:
    """The sample with each dense tensor changed, those of integers where `integers`; what requires a gradient
    still does, as a leaf."""

    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_nested:
            return value
        if not (integers or value.is_floating_point() or value.is_complex()):
            return value
        return change(value.detach()).requires_grad_(value.requires_grad)

    return sample.transform(one)
