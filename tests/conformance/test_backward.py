# SPDX-License-Identifier: Apache-2.0
"""Gradients are the CPU's, to the bit."""

from typing import Any

import torch
from opinfo.outcome import assert_same
from opinfo.pairs import Call, deterministic, outcomes, pairs, strictness
from torch.utils._pytree import tree_leaves

DTYPES = [torch.float32]


def applies(entry: Any, dtype: torch.dtype) -> bool:
    return entry.supports_autograd and dtype in entry.supported_dtypes("cpu") and deterministic(entry)


def _differentiable(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def _gradients(entry: Any, call: Call) -> Any:
    outputs = _differentiable(entry(call[0], *call[1], **call[2]))
    inputs = _differentiable(call)
    if not outputs or not inputs:
        return None
    generator = torch.Generator().manual_seed(2)
    weights = [
        torch.randn(output.shape, dtype=output.dtype, generator=generator).to(output.device)
        for output in outputs
    ]
    return torch.autograd.grad(outputs, inputs, weights, allow_unused=True)


def test_backward(entry: Any, dtype: torch.dtype) -> None:
    for calls in pairs(entry, dtype, requires_grad=True):
        reference, got = outcomes(lambda call: _gradients(entry, call), calls)
        assert_same(reference, got, **strictness(entry))
