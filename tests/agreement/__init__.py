# SPDX-License-Identifier: Apache-2.0
"""A computation on the device, compared with the same on the CPU."""

from collections.abc import Callable
from typing import Any

import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

DEVICE = "flagos:1"  # not the current one


def agrees(compute: Callable[[str], Any], times: int = 2, *, tolerance: float = 0.0) -> None:
    """`compute(device)` gives on the device what it gives on the CPU, to the bit, in type and strides.

    Also the second time, when every signature is known. `tolerance`, absolute and relative, is for what
    PyTorch itself computes in another order on devices other than the CPU.
    """
    torch.manual_seed(3)
    expected = tree_leaves(compute("cpu"))
    for _ in range(times):
        torch.manual_seed(3)
        got = tree_leaves(compute(DEVICE))
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            if isinstance(other, torch.Tensor):
                assert one.device == torch.device(DEVICE)
                assert one.stride() == other.stride()
                assert_close(one.cpu(), other, rtol=tolerance, atol=tolerance, equal_nan=True)
            else:
                assert one == other
