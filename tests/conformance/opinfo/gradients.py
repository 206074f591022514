# SPDX-License-Identifier: Apache-2.0
"""Gradients of what a function makes of a call, with cotangents that are the same on every device."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from opinfo.pairs import Call

Function = Callable[[Call], Any]


def differentiable(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def cotangents(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Random, contiguous."""
    generator = torch.Generator().manual_seed(2)
    return [
        torch.randn(output.shape, dtype=output.dtype, generator=generator).to(output.device)
        for output in outputs
    ]


def gradients(
    function: Function,
    call: Call,
    weights_of: Callable[[list[torch.Tensor]], list[torch.Tensor]] = cotangents,
) -> Any:
    """Of every tensor of the call that requires one; None where there is nothing to differentiate."""
    outputs = differentiable(function(call))
    inputs = differentiable(call)
    if not outputs or not inputs:
        return None
    return torch.autograd.grad(outputs, inputs, weights_of(outputs), allow_unused=True)
