# SPDX-License-Identifier: Apache-2.0
"""Results are the CPU's, to the bit, random ones too."""

from typing import Any

import torch
from opinfo.outcome import assert_same
from opinfo.pairs import outcomes, pairs, strictness

DTYPES = [torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64]


def applies(entry: Any, dtype: torch.dtype) -> bool:
    return dtype in entry.supported_dtypes("cpu")


def test_forward(entry: Any, dtype: torch.dtype) -> None:
    for calls in pairs(entry, dtype):
        reference, got = outcomes(lambda call: entry(call[0], *call[1], **call[2]), calls)
        assert_same(reference, got, **strictness(entry))
