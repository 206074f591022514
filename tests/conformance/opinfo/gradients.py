# SPDX-License-Identifier: Apache-2.0
"""Gradients of what a function makes of a call, with cotangents that are the same on every device."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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


def second_gradients(function: Function, call: Call) -> Any:
    """Gradients, and gradients of these with respect to the call's tensors and to the first cotangents.

    Autograd adds up in the order of its nodes' numbers, which each thread counts for itself; and a backward
    pass on a device makes nodes in a thread of that device's. In a new thread those of the call come before
    those of its gradients, on the CPU as on a device, so that sums are to the bit the same.
    """
    _count_far(call)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_second_gradients, function, call).result()


def _second_gradients(function: Function, call: Call) -> Any:
    outputs = differentiable(function(call))
    inputs = differentiable(call)
    if not outputs or not inputs:
        return None
    weights = [weight.requires_grad_() for weight in cotangents(outputs)]
    first = torch.autograd.grad(outputs, inputs, weights, allow_unused=True, create_graph=True)
    again = differentiable(first)
    if not again:
        return first
    second = torch.autograd.grad(again, inputs + weights, cotangents(again), allow_unused=True)
    return first, second


_far: set[torch.device] = set()


def _count_far(call: Call) -> None:
    """Makes autograd's thread of the call's device count to more nodes than any call has."""
    devices = {tensor.device for tensor in differentiable(call) if not tensor.is_cpu}
    for device in devices - _far:
        _far.add(device)
        leaf = torch.ones(1, device=device, requires_grad=True)
        root = leaf
        for _ in range(2000):
            root = root * leaf
        torch.autograd.grad(root, leaf, create_graph=True)
