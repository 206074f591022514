# SPDX-License-Identifier: Apache-2.0
"""Comparing what the device computed with what it should have."""

import torch


def assert_same(got: torch.Tensor, expected: torch.Tensor, *, device: int | None = None) -> None:
    """`got` lies on flagos and equals `expected`, of the CPU, in type, shape, strides and every bit of its
    values.

    The cpu vendor runs the kernels of the PyTorch that computed `expected`, so there is nothing to tolerate.
    """
    assert got.device.type == "flagos", got.device
    assert device is None or got.device.index == device, f"on {got.device}, not on device {device}"
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.stride() == expected.stride(), f"strides {got.stride()}, not {expected.stride()}"
    torch.testing.assert_close(got.cpu(), expected, rtol=0, atol=0, equal_nan=True)


def components(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The dense tensors of which a sparse one is made."""
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]


def assert_same_sparse(got: torch.Tensor, expected: torch.Tensor) -> None:
    """`got` is the sparse tensor on flagos that `expected` is on the CPU, in layout, shape and every bit of
    its components."""
    assert got.device.type == "flagos", got.device
    assert got.layout == expected.layout
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert (got.sparse_dim(), got.dense_dim()) == (expected.sparse_dim(), expected.dense_dim())
    if expected.layout == torch.sparse_coo:
        assert got.is_coalesced() == expected.is_coalesced()
    for one, other in zip(components(got), components(expected), strict=True):
        assert one.device == got.device
        torch.testing.assert_close(one.cpu(), other, rtol=0, atol=0, equal_nan=True)
