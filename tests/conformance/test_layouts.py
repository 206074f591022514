# SPDX-License-Identifier: Apache-2.0
"""Operands that are strided, expanded or channels-last give the CPU's values and strides."""

from typing import Any

import torch
from opinfo.database import samples
from opinfo.layouts import LAYOUTS, changed
from opinfo.outcome import assert_same
from opinfo.pairs import outcomes, pair, strictness

DTYPES = [torch.float32]


def applies(entry: Any, dtype: torch.dtype) -> bool:
    return dtype in entry.supported_dtypes("cpu")


def test_layouts(entry: Any, dtype: torch.dtype) -> None:
    for sample in samples(entry, dtype):
        for change in LAYOUTS:
            calls = pair(changed(sample, change))
            reference, got = outcomes(lambda call: entry(call[0], *call[1], **call[2]), calls)
            try:
                assert_same(reference, got, **strictness(entry))
            except Exception as error:
                error.add_note(f"operands {change.__name__}")
                raise
