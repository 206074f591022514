# SPDX-License-Identifier: Apache-2.0
"""Bytes arrive as they were sent, in both directions, whatever the layout, the type or the memory.

# regressions.md 19, 26, 64, 73; contract.md 14, 15
"""

import threading

import numpy as np
import pytest
import torch
from support.checks import assert_same

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint16, torch.uint32, torch.uint64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
    torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip


def random_bits(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Every bit random, so that NaNs with payload and negative zeros are among the values."""
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    raw = torch.randint(0, 256, (*shape[:-1], shape[-1] * dtype.itemsize), dtype=torch.uint8)
    return raw.view(dtype)


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_bit_survives_the_round_trip(dtype: torch.dtype) -> None:
    x = random_bits(dtype, 7, 33)
    y = x.to("flagos")
    assert (y.dtype, y.shape) == (x.dtype, x.shape)
    assert bits(y.cpu()) == bits(x)
    assert bits(y.clone().cpu()) == bits(x)


def test_doubles_are_exact() -> None:
    values = [1e300, -1e300, 5e-324, 1.7976931348623157e308, 0.1, -0.0, float("inf")]
    y = torch.tensor(values, dtype=torch.float64, device="flagos")
    assert [v.hex() for v in y.tolist()] == [v.hex() for v in values]
    assert y[0].item() == 1e300
    big = torch.tensor([2**53 + 1, -(2**63), 2**63 - 1], device="flagos")
    assert big.tolist() == [2**53 + 1, -(2**63), 2**63 - 1]


@pytest.mark.parametrize("size", [0, 1, 63, 4096, 1_000_003, 40_000_000])
def test_sizes_from_nothing_to_many_chunks(size: int) -> None:
    x = torch.randint(0, 256, (size,), dtype=torch.uint8)
    y = x.to("flagos")
    assert torch.equal(y.cpu(), x)
    if size:
        assert y[size // 2].item() == x[size // 2].item()
        assert int(y.sum(dtype=torch.int64)) == int(x.sum(dtype=torch.int64))


def layouts(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Views of one tensor of shape (4, 6, 8) that are not contiguous."""
    return {
        "transposed": x.transpose(0, 2),
        "every second": x[::2, 1::2, ::3],
        "expanded": x[:, :1].expand(4, 5, 8),
        "offset": x[1:, 2:, 3:],
        "overlapping": x.as_strided((3, 4), (1, 2), 5),
        "diagonal": x[0].diagonal(),
        "channels last": x.view(1, 4, 6, 8).contiguous(memory_format=torch.channels_last),
    }


@pytest.mark.parametrize("name", layouts(torch.zeros(4, 6, 8)))
def test_strided_copies_in_both_directions(name: str) -> None:
    x = torch.randn(4, 6, 8)
    source = layouts(x)[name]
    assert_same(source.to("flagos"), source.to("cpu", copy=True))
    on_device = layouts(x.to("flagos"))[name]
    assert torch.equal(on_device.cpu(), source)
    assert torch.equal(on_device.contiguous().cpu(), source)
    # Into a strided target, from each kind of memory.
    for origin in (source.clone(), source.clone().to("flagos")):
        wide = torch.zeros(*[2 * n for n in source.shape], device="flagos")
        target = wide[tuple(slice(None, None, 2) for _ in source.shape)]
        target.copy_(origin)
        assert torch.equal(target.cpu(), source)
        assert wide.sum().item() == pytest.approx(source.sum().item(), abs=1e-4), (
            "nothing beside it was written"
        )
    host = torch.zeros(*source.shape, 2)[..., 0]
    host.copy_(on_device)
    assert torch.equal(host, source)


@pytest.mark.parametrize(
    "to", [torch.float16, torch.float64, torch.int32, torch.bool, torch.complex64], ids=str
)
def test_copies_that_change_the_type(to: torch.dtype) -> None:
    x = torch.tensor([[0.0, 1.6, -2.4], [3.0, 0.5, 100.0]])
    assert_same(x.to("flagos", to), x.to(to))
    assert_same(x.to("flagos").to(to), x.to(to))
    assert_same(x.t().to("flagos", to), x.t().to(to))
    assert torch.equal(x.to("flagos").to("cpu", to), x.to(to))
    target = torch.empty(2, 3, dtype=to, device="flagos")
    assert_same(target.copy_(x), x.to(to))
    back = torch.empty(2, 3, dtype=torch.float64)
    if not to.is_complex:
        back.copy_(target)
        assert torch.equal(back, x.to(to).double())
    assert_same(
        torch.empty(2, 2, 3, dtype=to, device="flagos").copy_(x), x.to(to).expand(2, 2, 3).contiguous()
    )


def test_conjugate_and_negative_views_are_computed_when_copied() -> None:
    x = torch.tensor([1 + 2j, -3 - 4j])
    y = x.to("flagos")
    assert y.conj().is_conj()
    for made in (
        y.conj(),
        y.conj().resolve_conj(),
        y.conj().clone(),
        y.conj().contiguous(),
        x.conj().to("flagos"),
    ):
        assert made.cpu().resolve_conj().tolist() == [1 - 2j, -3 + 4j]
    assert y.conj().imag.is_neg()
    assert y.conj().imag.cpu().tolist() == [-2.0, 4.0]
    assert y.conj().imag.resolve_neg().tolist() == [-2.0, 4.0]
    target = torch.empty(2, dtype=torch.complex64, device="flagos")
    assert target.copy_(x.conj()).tolist() == [1 - 2j, -3 + 4j]
    assert target.copy_(y.conj()).tolist() == [1 - 2j, -3 + 4j]
    host = torch.empty(2, dtype=torch.complex64)
    assert host.copy_(y.conj()).tolist() == [1 - 2j, -3 + 4j]
    assert (y.conj() * y).tolist() == [5 + 0j, 25 + 0j]
    assert torch.view_as_real(y).tolist() == [[1, 2], [-3, -4]]


def test_to_copies_only_when_it_must() -> None:
    y = torch.ones(3, device="flagos")
    assert y.to("flagos") is y
    assert y.to("flagos", copy=True).data_ptr() != y.data_ptr()
    assert y.flagos() is y


def test_pinned_memory() -> None:
    x = torch.randn(1000, 10)
    assert not x.is_pinned()
    pinned = x.pin_memory()
    assert pinned.is_pinned()
    assert pinned.device.type == "cpu"
    assert torch.equal(pinned, x)
    assert pinned[3:].is_pinned()
    assert torch.empty(5, pin_memory=True).is_pinned()
    assert_same(pinned.to("flagos", non_blocking=True), x)
    assert_same(pinned.t().to("flagos", non_blocking=True), x.t())
    back = x.to("flagos").to("cpu", non_blocking=True)
    torch.flagos.synchronize()
    assert torch.equal(back, x)
    target = torch.empty(1000, 10, pin_memory=True)
    target.copy_(pinned.to("flagos") * 2, non_blocking=True)
    torch.flagos.synchronize()
    assert torch.equal(target, x * 2)
    assert torch.ops.aten._to_copy(x.to("flagos"), device=torch.device("cpu"), pin_memory=True).is_pinned()
    with pytest.raises(RuntimeError, match="pin"):
        torch.empty(5, device="flagos", pin_memory=True)
    with pytest.raises(RuntimeError, match="pin"):
        x.to("flagos").pin_memory()


def test_the_source_of_a_blocking_copy_is_free_at_once() -> None:
    x = torch.full((300_000,), 1.0)
    copies = []
    for i in range(20):
        x.fill_(float(i))
        copies.append(x.to("flagos"))
    for i, copy in enumerate(copies):
        assert copy.min().item() == copy.max().item() == i


def test_pinned_memory_is_not_reused_under_a_copy() -> None:
    copies = [
        torch.full((100_000,), float(i)).pin_memory().to("flagos", non_blocking=True) for i in range(50)
    ]  # each pinned source dies at once
    for i, copy in enumerate(copies):
        assert copy.min().item() == copy.max().item() == i


def test_copies_of_many_threads_do_not_mix() -> None:
    wrong: list[str] = []

    def work(number: int) -> None:
        generator = torch.Generator().manual_seed(number)
        for _ in range(30):
            x = torch.randint(0, 2**31, (number * 991 + 1,), generator=generator)
            if not torch.equal((x.to("flagos") + number).cpu(), x + number):
                wrong.append(f"thread {number}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong


def test_numpy_needs_the_host() -> None:
    y = torch.ones(3, device="flagos")
    with pytest.raises(TypeError, match="cpu"):
        y.numpy()
    assert_same(torch.from_numpy(np.arange(4)).to("flagos"), torch.arange(4))
    assert torch.as_tensor(np.ones(2), device="flagos").tolist() == [1, 1]


def test_storages() -> None:
    y = torch.arange(6.0, device="flagos")
    storage = y.untyped_storage()
    assert (storage.device, storage.nbytes()) == (torch.device("flagos", 0), 24)
    assert storage.is_flagos
    assert storage.cpu().tolist() == y.cpu().untyped_storage().tolist()
    assert torch.arange(6.0).untyped_storage().flagos().cpu().tolist() == storage.cpu().tolist()
    storage.resize_(8)
    storage.resize_(24)
    assert y[:2].tolist() == [0.0, 1.0], "what fitted is kept"
    storage.resize_(0)
    assert storage.nbytes() == 0
    storage.resize_(24)
    assert y.fill_(3.0).tolist() == [3.0] * 6
