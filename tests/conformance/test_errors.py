# SPDX-License-Identifier: Apache-2.0
"""Wrong input raises the CPU's exception: the same type and text."""

from typing import Any

import torch
from opinfo.outcome import assert_same
from opinfo.pairs import outcomes, pair

DTYPES = [torch.float32]  # error inputs choose their own


def applies(entry: Any, dtype: torch.dtype) -> bool:
    return entry.error_inputs_func is not None


def test_errors(entry: Any, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    for wrong in entry.error_inputs("cpu"):
        calls = pair(wrong.sample_input)
        reference, got = outcomes(lambda call: entry(call[0], *call[1], **call[2]), calls)
        assert_same(reference, got, values=False)
