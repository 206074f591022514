# SPDX-License-Identifier: Apache-2.0
"""Under autocast every operator runs, and its results are those of float32 but for the type's rounding."""

from typing import Any

import torch
from opinfo.outcome import run
from opinfo.pairs import Call, deterministic, pairs
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

DTYPES = [torch.bfloat16, torch.float16]  # of autocast; the operands are in float32


def applies(entry: Any, dtype: torch.dtype) -> bool:
    return torch.float32 in entry.supported_dtypes("cpu") and deterministic(entry)


def _autocast(entry: Any, call: Call, dtype: torch.dtype) -> Any:
    with torch.autocast("flagos", dtype):
        return entry(call[0], *call[1], **call[2])


def test_autocast(entry: Any, dtype: torch.dtype) -> None:
    for on_cpu, on_device in pairs(entry, torch.float32):
        reference = run(lambda: entry(on_cpu[0], *on_cpu[1], **on_cpu[2]))  # noqa: B023
        got = run(lambda: _autocast(entry, on_device, dtype))  # noqa: B023
        if reference.error is not None:
            continue  # the error checks compare those
        if got.error is not None:
            raise got.error
        expected, actual = tree_leaves(reference.value), tree_leaves(got.value)
        assert len(expected) == len(actual)
        for one, other in zip(expected, actual, strict=True):
            if isinstance(one, torch.Tensor):
                assert one.shape == other.shape
                assert other.dtype in (one.dtype, dtype)
                if one.layout == torch.strided and one.dtype.is_floating_point:
                    finite = one[one.isfinite()]
                    scale = float(finite.abs().max()) if finite.numel() else 0.0
                    close = {"rtol": 0.05, "atol": 0.02 * scale, "equal_nan": True}
                    # What float16 cannot hold is infinite.
                    rounded = one.detach().to(other.dtype).to(one.dtype)
                    assert_close(other.detach().cpu().to(one.dtype), rounded, **close)
