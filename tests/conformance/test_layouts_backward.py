# SPDX-License-Identifier: Apache-2.0
"""Gradients of operands, and from cotangents, that are strided, expanded or channels-last are the CPU's."""

from collections.abc import Callable
from typing import Any

import torch
from opinfo.database import samples
from opinfo.gradients import cotangents, gradients
from opinfo.layouts import LAYOUTS, changed
from opinfo.outcome import assert_same
from opinfo.pairs import deterministic, outcomes, pair, strictness

DTYPES = [torch.float32]


def applies(entry: Any, dtype: torch.dtype) -> bool:
    return entry.supports_autograd and dtype in entry.supported_dtypes("cpu") and deterministic(entry)


def _laid_out(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[list[torch.Tensor]], Any]:
    """Cotangents in a layout; expanded ones are what sum() and mean() hand to what is before them."""

    def weights_of(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        return [
            change(weight) if weight.layout == torch.strided else weight for weight in cotangents(outputs)
        ]

    return weights_of


def test_layouts_backward(entry: Any, dtype: torch.dtype) -> None:
    for sample in samples(entry, dtype, requires_grad=True):
        for change in LAYOUTS:
            weights_of = _laid_out(change)
            reference, got = outcomes(
                lambda call: gradients(lambda call: entry(call[0], *call[1], **call[2]), call, weights_of),  # noqa: B023
                # Expanded offsets, as of embedding_bag, would have gradients of memory that nobody wrote.
                pair(changed(sample, change, integers=False)),
            )
            try:
                assert_same(reference, got, **strictness(entry))
            except Exception as error:
                error.add_note(f"operands and cotangents {change.__name__}")
                raise
