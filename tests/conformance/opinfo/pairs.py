# SPDX-License-Identifier: Apache-2.0
"""Samples in pairs: one on the CPU, its copy on the device."""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from opinfo.database import samples
from opinfo.outcome import Outcome, run
from opinfo.placement import DEVICE, Placement

# Input, positional and keyword arguments, for OpInfo's way of calling.
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]

_CPU = torch.device("cpu")


def pair(sample: Any) -> tuple[Call, Call]:
    """Two copies of a sample, neither of which shares memory with it."""
    call = (sample.input, sample.args, sample.kwargs)
    return Placement(_CPU)(call), Placement(DEVICE)(call)


def pairs(entry: Any, dtype: torch.dtype, requires_grad: bool = False) -> Iterator[tuple[Call, Call]]:
    for sample in samples(entry, dtype, requires_grad):
        yield pair(sample)


def outcomes(action: Callable[[Call], Any], calls: tuple[Call, Call]) -> tuple[Outcome, Outcome]:
    """What `action` does with the call on the CPU, and with its copy on the device."""
    reference, got = (run(lambda: action(call)) for call in calls)  # noqa: B023
    return reference, got


def deterministic(entry: Any) -> bool:
    """Whether values can be compared: not those of memory that nobody wrote."""
    return "empty" not in entry.name


def strictness(entry: Any) -> dict[str, bool]:
    """How assert_same() is to compare values.

    The CPU itself rounds LAPACK's gelsy differently from call to call.
    """
    return {"values": deterministic(entry), "rounded": entry.name == "linalg.lstsq"}
