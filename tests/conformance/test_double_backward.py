# SPDX-License-Identifier: Apache-2.0
"""Gradients of gradients are the CPU's, to the bit."""

from typing import Any

import torch
from opinfo.gradients import second_gradients
from opinfo.outcome import assert_same
from opinfo.pairs import deterministic, outcomes, pairs, strictness

DTYPES = [torch.float64]


def applies(entry: Any, dtype: torch.dtype) -> bool:
    return entry.supports_gradgrad and dtype in entry.supported_dtypes("cpu") and deterministic(entry)


def test_double_backward(entry: Any, dtype: torch.dtype) -> None:
    for calls in pairs(entry, dtype, requires_grad=True):
        reference, got = outcomes(
            lambda call: second_gradients(lambda call: entry(call[0], *call[1], **call[2]), call), calls
        )
        assert_same(reference, got, **strictness(entry))
