# SPDX-License-Identifier: Apache-2.0
"""Operands that are strided, expanded or channels-last give the CPU's values and strides."""

from collections.abc import Callable
from typing import Any

import torch
from opinfo.database import samples
from opinfo.outcome import assert_same
from opinfo.pairs import outcomes, pair, strictness

DTYPES = [torch.float32]


def applies(entry: Any, dtype: torch.dtype) -> bool:
    return dtype in entry.supported_dtypes("cpu")


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    wide = torch.stack([tensor, tensor], -1)
    return wide[..., 0]


def _expanded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.narrow(0, 0, 1).expand(tensor.shape) if tensor.dim() > 0 and len(tensor) > 1 else tensor


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    memory_format = formats.get(tensor.dim())
    return tensor.contiguous(memory_format=memory_format) if memory_format else tensor


def _changed(sample: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    def one(value: Any) -> Any:
        dense = isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_nested
        return change(value) if dense else value

    return sample.transform(one)


def test_layouts(entry: Any, dtype: torch.dtype) -> None:
    for sample in samples(entry, dtype):
        for change in (_strided, _expanded, _channels_last):
            calls = pair(_changed(sample, change))
            reference, got = outcomes(lambda call: entry(call[0], *call[1], **call[2]), calls)
            try:
                assert_same(reference, got, **strictness(entry))
            except Exception as error:
                error.add_note(f"operands {change.__name__.removeprefix('_')}")
                raise
