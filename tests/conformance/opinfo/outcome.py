# SPDX-License-Identifier: Apache-2.0
"""What a call does, so that two devices can be compared: its results, error and warnings."""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_flatten

from opinfo.placement import DEVICE

Function = Callable[[], Any]


@dataclass(frozen=True)
class Outcome:
    """`value` is None where `error` is not."""

    value: Any
    error: Exception | None
    warnings: frozenset[str]


def run(function: Function) -> Outcome:
    """Calls it, with the random numbers of seed 1, and waits for what it issued."""
    torch.manual_seed(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value, error = None, None
        try:
            value = function()
            torch.flagos.synchronize(DEVICE)
        except Exception as raised:
            value, error = None, raised
    return Outcome(value, error, frozenset(_neutral(str(warning.message)) for warning in caught))


def assert_same(reference: Outcome, got: Outcome, *, values: bool = True, rounded: bool = False) -> None:
    """Both did the same: values, shapes, strides, dtypes, error, warnings.

    Values are compared to the bit, only closely where `rounded`, and not at all where not `values`.
    Raises AssertionError that says what differs.
    """
    if reference.error is not None:
        assert got.error is not None, f"cpu raises {_text(reference.error)!r}, the device nothing"
        assert type(got.error) is type(reference.error), (
            f"cpu raises {type(reference.error).__name__}: {reference.error}; "
            f"device {type(got.error).__name__}: {got.error}"
        )
        assert _text(got.error) == _text(reference.error)
        return
    if got.error is not None:
        raise got.error
    expected, expected_form = tree_flatten(reference.value)
    actual, actual_form = tree_flatten(got.value)
    assert len(expected) == len(actual), f"cpu returns {expected_form}, device {actual_form}"
    for one, other in zip(expected, actual, strict=True):
        if isinstance(one, torch.Tensor):
            _assert_same_tensor(one, other, values, rounded)
        elif isinstance(one, torch.device):
            assert other in (DEVICE, one)
        elif values or not isinstance(one, float):
            assert one == other or (one != one and other != other), f"cpu {one!r}, device {other!r}"
    assert got.warnings == reference.warnings


def _assert_same_tensor(expected: torch.Tensor, actual: Any, values: bool, rounded: bool) -> None:
    assert isinstance(actual, torch.Tensor), f"cpu returns a tensor, device {actual!r}"
    assert (expected.shape, expected.dtype, expected.layout) == (actual.shape, actual.dtype, actual.layout)
    assert expected.requires_grad == actual.requires_grad, "requires_grad differs"
    assert actual.device in (DEVICE, expected.device), f"it is on {actual.device}"
    if expected.layout == torch.strided and not expected.is_nested:
        _assert_same_layout(expected, actual)
    if values:
        tolerance = {"rtol": 1e-3, "atol": 1e-4} if rounded else {"rtol": 0, "atol": 0}
        assert_close(actual.detach().cpu(), expected.detach(), equal_nan=True, **tolerance)


def _assert_same_layout(expected: torch.Tensor, actual: torch.Tensor) -> None:
    assert (expected.is_conj(), expected.is_neg()) == (actual.is_conj(), actual.is_neg()), "lazy bits differ"
    if expected.numel() == 0:
        return
    # Strides of dimensions of one element mean nothing.
    pairs = zip(expected.shape, expected.stride(), actual.stride(), strict=True)
    differ = any(size > 1 and one != other for size, one, other in pairs)
    assert not differ, f"strides: cpu {expected.stride()}, device {actual.stride()}"
    assert expected.storage_offset() == actual.storage_offset(), "storage offsets differ"


def _neutral(text: str) -> str:
    """A text without the names of devices, addresses and where PyTorch raised it."""
    text = re.sub(r"flagos(:\d+)?", "cpu", text)
    text = re.sub(r"PrivateUse1", "CPU", text).replace(", device='cpu'", "")
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    return text.split("\nException raised from")[0].split(" (Triggered internally at")[0]


# What an error that only the data shows has after PyTorch's text, where the call had not to be waited for.
_PLACE = re.compile(r"\n\(raised by [^\n]*, record \d+ of the session, which ran asynchronously; [^\n]*\)$")


def _text(error: Exception) -> str:
    return _neutral(_PLACE.sub("", str(error)))
