# SPDX-License-Identifier: Apache-2.0
"""Operators and factories on the device give what the CPU gives."""

import math

import pytest
import torch
from support.checks import assert_same

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
]  # fmt: skip


def test_ones_are_ones() -> None:
    ones = torch.ones(2, device="flagos")
    assert ones.device == torch.device("flagos", 0)
    assert ones.tolist() == [1.0, 1.0]
    assert not ones.is_cpu
    assert ones.is_flagos


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arithmetic_in_every_dtype(dtype: torch.dtype) -> None:
    a = torch.tensor([0, 1, 3, 1, 0]).to(dtype)
    b = torch.tensor([1, 1, 2, 0, 0]).to(dtype)
    assert_same(a.to("flagos") * b.to("flagos"), a * b)
    assert_same(a.to("flagos") == b.to("flagos"), a == b)
    if dtype != torch.bool:
        assert_same(a.to("flagos") + b.to("flagos"), a + b)


def test_promotion_is_pytorchs() -> None:
    ints, halves, wide = (
        torch.tensor([1, 2]),
        torch.tensor([0.5, 2.5]).half(),
        torch.tensor([1e-9, 2.0]).double(),
    )
    for one in (ints, halves, wide):
        for other in (ints, halves, wide):
            assert_same(one.to("flagos") + other.to("flagos"), one + other)
    assert_same(ints.to("flagos") / 2, ints / 2)
    assert_same(halves.to("flagos") * 3, halves * 3)
    assert_same(torch.tensor([True, False]).to("flagos") + ints.to("flagos"), torch.tensor([2, 2]))


def test_scalars_and_zero_dimensional_tensors_of_the_cpu_mix() -> None:
    x = torch.arange(4.0)
    assert_same(x.to("flagos") - 3.0, x - 3.0)
    assert_same(torch.sub(x.to("flagos"), 3.0, alpha=2), torch.sub(x, 3.0, alpha=2))
    assert_same(x.to("flagos") * torch.tensor(2.5), x * 2.5)
    assert_same(torch.tensor(2, dtype=torch.int64) * x.to("flagos"), x * 2)
    assert_same(torch.where(x.to("flagos") > 1, x.to("flagos"), 7.0), torch.where(x > 1, x, 7.0))


def test_scalars_that_change_at_each_call_are_not_remembered() -> None:
    x = torch.ones(3, device="flagos")
    for i in range(20):
        assert torch.add(x, i, alpha=2).tolist() == [1.0 + 2 * i] * 3
        assert x.mul(0.5 + i).tolist() == [0.5 + i] * 3
        assert torch.full((2,), float(i), device="flagos").tolist() == [i, i]
        assert torch.arange(i, device="flagos").tolist() == list(range(i))


def test_reductions_and_reads() -> None:
    x = torch.linspace(-3, 5, 77, dtype=torch.float64)
    y = x.to("flagos")
    assert y.sum().item() == x.sum().item()
    assert y.mean().item() == pytest.approx(1.0, abs=1e-12)
    assert_same(y.view(7, 11).argmax(dim=1), x.view(7, 11).argmax(dim=1))
    assert_same(y.view(7, 11).var(dim=0, correction=0), x.view(7, 11).var(dim=0, correction=0))
    assert bool((y > 4.9).any())
    assert not bool((y > 4.9).all())
    assert torch.equal(y, y.clone())
    assert torch.allclose(y, y + 1e-12)
    assert math.isclose(float(y[0]), -3.0)
    assert int(torch.tensor(41, device="flagos") + 1) == 42
    values, indices = y.view(7, 11).max(dim=1)
    assert_same(values, x.view(7, 11).max(dim=1).values)
    assert_same(indices, x.view(7, 11).max(dim=1).indices)


def test_results_whose_size_depends_on_data() -> None:
    x = torch.tensor([3, 0, 1, 3, 0, 7])
    y = x.to("flagos")
    assert_same(y.nonzero(), x.nonzero())
    assert_same(y[y > 1], x[x > 1])
    assert_same(y.unique(), x.unique())
    assert_same(torch.masked_select(y, y == 0), torch.masked_select(x, x == 0))
    assert_same(torch.repeat_interleave(y, 2), torch.repeat_interleave(x, 2))
    for n in range(5):  # the same shape in, another out
        z = (torch.arange(8) < n).to("flagos")
        assert z.nonzero().flatten().tolist() == list(range(n))


def test_matrix_products_equal_a_wider_computation() -> None:
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(5, 17, 23, generator=generator)
    b = torch.randn(5, 23, 11, generator=generator)
    exact = a.double() @ b.double()
    assert torch.allclose((a.to("flagos") @ b.to("flagos")).cpu().double(), exact, atol=1e-4)
    assert_same(
        torch.einsum("bij,bjk->bik", a.to("flagos"), b.to("flagos")), torch.einsum("bij,bjk->bik", a, b)
    )
    assert_same(torch.addmm(a[0, :, :11].to("flagos"), a[0].to("flagos"), b[0].to("flagos"), beta=0.5),
                torch.addmm(a[0, :, :11], a[0], b[0], beta=0.5))  # fmt: skip


def test_in_place_and_out_forms_return_the_callers_tensor() -> None:
    x = torch.arange(6.0, device="flagos")
    assert x.add_(1) is x
    assert x.tolist() == [1, 2, 3, 4, 5, 6]
    out = torch.empty(6, device="flagos")
    assert torch.mul(x, 2, out=out) is out
    assert out.tolist() == [2, 4, 6, 8, 10, 12]
    small = torch.empty(0, device="flagos")
    assert torch.add(x, 1, out=small) is small
    assert small.shape == (6,)
    assert small.tolist() == [2, 3, 4, 5, 6, 7]
    assert torch.add(x, 2, out=small).tolist() == [3, 4, 5, 6, 7, 8]
    values, places = torch.empty(0, device="flagos"), torch.empty(0, dtype=torch.int64, device="flagos")
    torch.sort(x, descending=True, out=(values, places))
    assert (values.tolist(), places.tolist()) == ([6, 5, 4, 3, 2, 1], [5, 4, 3, 2, 1, 0])


def test_indexing() -> None:
    x = torch.arange(24.0).view(2, 3, 4)
    y = x.to("flagos")
    index = torch.tensor([2, 0])
    assert_same(y[:, index], x[:, index])  # an index on the CPU
    assert_same(y[:, index.to("flagos")], x[:, index])
    assert_same(y[:, index, index.to("flagos")], x[:, index, index])
    assert_same(y[..., None, 1:3], x[..., None, 1:3])
    y[0, index.to("flagos")] = -1.0
    x[0, index] = -1.0
    assert_same(y, x)
    y[y > 20] = 0
    x[x > 20] = 0
    assert_same(y, x)
    with pytest.raises(IndexError):
        y[:, torch.tensor([5])]
    assert y.device.type == "flagos"
    assert_same(y, x)  # usable after the error


@pytest.mark.parametrize("count", [1, 31, 60, 128, 310])
def test_foreach_changes_every_entry_of_a_list(count: int) -> None:
    host = [torch.full((1 + i % 3,), float(i)) for i in range(count)]
    device = [t.to("flagos") for t in host]
    for tensors in (host, device):
        torch._foreach_add_(tensors, 1.5)
        torch._foreach_mul_(tensors, [float(i) for i in range(count)])
        torch._foreach_addcdiv_(tensors, tensors, [t + 3 for t in tensors], value=0.5)
    for one, other in zip(device, host, strict=True):
        assert_same(one, other)
    norms = torch._foreach_norm(device)
    for norm, tensor in zip(norms, host, strict=True):
        assert_same(norm, tensor.norm())


def test_factories() -> None:
    like = torch.empty(2, 3, dtype=torch.float16, device="flagos")
    assert_same(torch.zeros_like(like), torch.zeros(2, 3, dtype=torch.float16))
    assert_same(torch.full((2, 2), 7, device="flagos"), torch.full((2, 2), 7))
    assert_same(torch.arange(0.0, 3.0, 0.5, device="flagos"), torch.arange(0.0, 3.0, 0.5))
    assert_same(torch.eye(3, 4, device="flagos"), torch.eye(3, 4))
    assert_same(torch.linspace(0, 1, 9, device="flagos"), torch.linspace(0, 1, 9))
    assert_same(torch.tensor([[1, 2], [3, 4]], device="flagos"), torch.tensor([[1, 2], [3, 4]]))
    assert_same(torch.tril(torch.ones(4, 4, device="flagos")), torch.tril(torch.ones(4, 4)))
    assert_same(like.new_ones(3), torch.ones(3, dtype=torch.float16))
    assert torch.empty_strided((2, 3), (1, 2), device="flagos").stride() == (1, 2)
    channels_last = torch.empty(2, 3, 4, 5, device="flagos", memory_format=torch.channels_last)
    assert channels_last.is_contiguous(memory_format=torch.channels_last)


def test_the_default_device_and_the_default_dtype_count() -> None:
    with torch.device("flagos"):
        assert torch.ones(2).device.type == "flagos"
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.ones(2, device="flagos").dtype == torch.float64
        assert_same(torch.arange(3, device="flagos") / 2, torch.arange(3) / 2)
    finally:
        torch.set_default_dtype(torch.float32)
    assert_same(torch.arange(3, device="flagos") / 2, torch.arange(3) / 2)


def test_printing_shows_values_and_device() -> None:
    assert repr(torch.tensor([1.5, 2.0], device="flagos")) == "tensor([1.5000, 2.0000], device='flagos:0')"


def test_integers_beyond_the_signed_ones() -> None:
    big = torch.full((2,), 2**63, dtype=torch.uint64, device="flagos")
    assert big.tolist() == [2**63, 2**63]
    assert torch.full((2,), 2**64 - 1, dtype=torch.uint64, device="flagos").tolist() == [2**64 - 1] * 2
