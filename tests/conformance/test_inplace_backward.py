# SPDX-License-Identifier: Apache-2.0
"""Gradients through in-place variants are the CPU's, to the bit: of what was overwritten, too."""

from typing import Any

import torch
from opinfo.gradients import gradients
from opinfo.outcome import assert_same
from opinfo.pairs import Call, deterministic, outcomes, pairs, strictness

DTYPES = [torch.float32]


def applies(entry: Any, dtype: torch.dtype) -> bool:
    return (
        entry.get_inplace() is not None
        and entry.supports_inplace_autograd
        and dtype in entry.supported_dtypes("cpu")
        and deterministic(entry)
    )


def _call(entry: Any, call: Call) -> Any:
    """Overwrites a copy, for a leaf that requires a gradient cannot be; and goes on with a view of it."""
    operand, args, kwargs = call
    copy = operand.clone()
    view = copy[...]
    result = entry.get_inplace()(copy, *args, **kwargs)
    return result, view


def test_inplace_backward(entry: Any, dtype: torch.dtype) -> None:
    for calls in pairs(entry, dtype, requires_grad=True):
        if not isinstance(calls[0][0], torch.Tensor):
            continue
        reference, got = outcomes(lambda call: gradients(lambda call: _call(entry, call), call), calls)
        assert_same(reference, got, **strictness(entry))
