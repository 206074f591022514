# SPDX-License-Identifier: Apache-2.0
"""In-place variants write into their operand and return it, with the CPU's values and errors."""

from typing import Any

import torch
from opinfo.outcome import assert_same
from opinfo.pairs import Call, outcomes, pairs, strictness

DTYPES = [torch.float32, torch.int64]


def applies(entry: Any, dtype: torch.dtype) -> bool:
    return entry.get_inplace() is not None and dtype in entry.supported_dtypes("cpu")


def _call(entry: Any, call: Call) -> Any:
    operand, args, kwargs = call
    result = entry.get_inplace()(operand, *args, **kwargs)
    return result, operand, result is operand


def test_inplace(entry: Any, dtype: torch.dtype) -> None:
    for calls in pairs(entry, dtype):
        if not isinstance(calls[0][0], torch.Tensor):
            continue
        reference, got = outcomes(lambda call: _call(entry, call), calls)
        assert_same(reference, got, **strictness(entry))
