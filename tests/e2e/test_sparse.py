# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors on the device, of every layout, give what the CPU gives."""

import copy
import io
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.checks import assert_same, assert_same_sparse, components

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:.*support is in beta"),
]

DTYPES = [torch.float32, torch.int64, torch.bool, torch.complex64, torch.bfloat16]
BLOCKS: dict[torch.layout, dict[str, Any]] = {
    torch.sparse_coo: {},
    torch.sparse_csr: {},
    torch.sparse_csc: {},
    torch.sparse_bsr: {"blocksize": (2, 1)},
    torch.sparse_bsc: {"blocksize": (2, 1)},
}
LAYOUTS = list(BLOCKS)
COMPRESSED = LAYOUTS[1:]


def dense(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor([[0, 1, 0], [2, 0, 3], [0, 0, 0], [4, 0, 0]]).to(dtype)


def sparse(layout: torch.layout, dtype: torch.dtype = torch.float32, device: str = "cpu") -> torch.Tensor:
    return dense(dtype).to_sparse(layout=layout, **BLOCKS[layout]).to(device)


def coo(device: str = "cpu", dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Not coalesced: the place (1, 2) comes twice."""
    values = torch.tensor([1, 2, 3, 4]).to(dtype)
    return torch.sparse_coo_tensor(torch.tensor([[1, 0, 1, 1], [2, 1, 0, 2]]), values, (2, 3)).to(device)


def check(compute: Callable[[str], Any]) -> None:
    """What `compute` gives with the device's name is what it gives with the CPU's, where that computes it."""
    try:
        expected = compute("cpu")
    except (RuntimeError, NotImplementedError) as error:
        with pytest.raises(type(error)):
            compute("flagos")
        return
    got = compute("flagos")
    if not isinstance(expected, tuple):
        got, expected = (got,), (expected,)
    for one, other in zip(got, expected, strict=True):
        if not isinstance(other, torch.Tensor):
            assert one == other
        elif other.layout == torch.strided:
            assert_same(one.detach(), other.detach())
        else:
            assert_same_sparse(one.detach(), other.detach())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_dense_becomes_sparse_and_dense_again(layout: torch.layout, dtype: torch.dtype) -> None:
    expected = sparse(layout, dtype)
    got = dense(dtype).to("flagos").to_sparse(layout=layout, **BLOCKS[layout])
    assert_same_sparse(got, expected)
    assert_same(got.to_dense(), dense(dtype))
    assert got._nnz() == expected._nnz()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_transfers_go_component_by_component(layout: torch.layout, dtype: torch.dtype) -> None:
    host = sparse(layout, dtype)
    device = host.to("flagos")
    assert_same_sparse(device, host)
    back = device.cpu()
    assert back.device.type == "cpu"
    assert back.layout == layout
    for one, other in zip(components(back), components(host), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert_same_sparse(device.to(torch.complex128), host.to(torch.complex128))
    assert_same_sparse(device.clone(), host)
    assert_same_sparse(torch.empty_like(device).copy_(host), host)
    other = device.to("flagos:1")
    assert {part.device.index for part in components(other)} == {1}
    assert_same_sparse(other, host)
    check(lambda d: sparse(layout, dtype, "cpu" if d == "cpu" else "flagos:1") * 2)


@pytest.mark.parametrize("source", LAYOUTS, ids=str)
@pytest.mark.parametrize("target", LAYOUTS, ids=str)
def test_layouts_become_each_other(source: torch.layout, target: torch.layout) -> None:
    check(lambda d: sparse(source, device=d).to_sparse(layout=target, **BLOCKS[target]))


def test_creation() -> None:
    check(lambda d: torch.sparse_coo_tensor([[0, 1], [2, 0]], [1.0, 2.0], (2, 3), device=d))
    check(lambda d: torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(2, 4)).to(d))
    check(lambda d: torch.sparse_coo_tensor(torch.tensor([[0, 4]], device=d), torch.ones(2, device=d)))
    check(lambda d: torch.sparse_coo_tensor((3, 4), device=d))
    check(lambda d: torch.empty(2, 3, layout=torch.sparse_coo, device=d))
    check(lambda d: torch.empty(2, 3, layout=torch.sparse_csr, device=d).shape)
    check(lambda d: torch.sparse_csr_tensor([0, 1, 2], [1, 0], [5.0, 6.0], (2, 2), device=d))
    check(lambda d: torch.sparse_csc_tensor([0, 1, 2], [1, 0], [5.0, 6.0], (2, 2), device=d))
    check(lambda d: torch.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2], [3, 4]]], (2, 2), device=d))
    check(lambda d: torch.sparse_bsc_tensor([0, 1], [0], [[[1.0, 2], [3, 4]]], (2, 2), device=d))
    check(lambda d: torch.zeros_like(coo(d)))
    check(lambda d: torch.sparse_coo_tensor([[0, 1]], [1, 2], (2,), device=d, check_invariants=True))


def test_a_new_number_of_entries_is_a_new_answer() -> None:
    for n in range(5):
        x = (torch.arange(6) < n).float()
        assert_same_sparse(x.to("flagos").to_sparse(), x.to_sparse())
        assert_same_sparse(x.to("flagos").to_sparse() * 2, x.to_sparse() * 2)


def test_structure() -> None:
    check(lambda d: (coo(d).coalesce(), coo(d).is_coalesced(), coo(d).coalesce().is_coalesced()))
    check(lambda d: (coo(d).coalesce().indices(), coo(d).coalesce().values()))
    check(lambda d: (coo(d).sparse_dim(), coo(d).dense_dim(), coo(d)._nnz(), coo(d)._dimI(), coo(d)._dimV()))
    check(lambda d: (sparse(torch.sparse_csr, device=d).crow_indices(),
                     sparse(torch.sparse_csr, device=d).col_indices(),
                     sparse(torch.sparse_csc, device=d).ccol_indices(),
                     sparse(torch.sparse_csc, device=d).row_indices()))  # fmt: skip
    check(lambda d: (sparse(torch.sparse_csr, device=d).sparse_dim(), coo(d).is_sparse, coo(d).layout))
    check(lambda d: coo(d).detach())
    check(lambda d: coo(d).sparse_resize_((3, 4), 2, 0))
    check(lambda d: coo(d).sparse_resize_and_clear_((3, 4, 5), 1, 2))
    check(lambda d: torch.empty(0, 0, layout=torch.sparse_coo, device=d).resize_as_sparse_(coo(d)))
    check(lambda d: sparse(torch.sparse_csr, device=d).resize_(5, 3).crow_indices())
    check(lambda d: coo(d).to_dense().sparse_mask(coo(d).coalesce()))
    assert coo("flagos")._indices().device.type == "flagos"


@pytest.mark.parametrize(
    "compute",
    [
        lambda d: coo(d) + coo(d),
        lambda d: coo(d) - 2 * coo(d),
        lambda d: coo(d) * coo(d),
        lambda d: coo(d) / 2,
        lambda d: coo(d).coalesce() * torch.ones(2, 3, device=d),
        lambda d: torch.ones(2, 3, device=d) + coo(d),
        lambda d: coo(d).coalesce().sin(),
        lambda d: coo(d).coalesce().pow(2),
        lambda d: coo(d).t(),
        lambda d: coo(d).unsqueeze(0),
        lambda d: torch.cat([coo(d), coo(d)], 1),
        lambda d: torch.stack([coo(d), coo(d)]),
        lambda d: coo(d)[1],
        lambda d: coo(d).index_select(1, torch.tensor([2, 0], device=d)),
        lambda d: coo(d).sum(),
        lambda d: torch.sparse.sum(coo(d), 0),
        lambda d: torch.sparse.softmax(coo(d), 1),
        lambda d: torch.sparse.log_softmax(coo(d), 0),
        lambda d: coo(d).norm(),
        lambda d: coo(d).isnan(),
        lambda d: torch.sparse.spdiags(torch.arange(6.0).view(2, 3), torch.tensor([0, 1]), (3, 3)).to(d),
    ],
)
def test_arithmetic_of_coo(compute: Callable[[str], torch.Tensor]) -> None:
    check(compute)


@pytest.mark.parametrize("layout", COMPRESSED, ids=str)
def test_arithmetic_of_compressed_layouts(layout: torch.layout) -> None:
    check(lambda d: sparse(layout, device=d) * 2)
    check(lambda d: sparse(layout, device=d).sin())
    check(lambda d: -sparse(layout, device=d))
    check(lambda d: sparse(layout, device=d).sum())
    check(lambda d: sparse(layout, device=d) @ torch.arange(6.0).view(3, 2).to(d))


def test_products() -> None:
    def right(d: str) -> torch.Tensor:
        return torch.arange(6.0).view(3, 2).to(d)

    def csr(d: str) -> torch.Tensor:
        return coo(d).coalesce().to_sparse_csr()

    for left in (coo, csr):
        check(lambda d, left=left: torch.mm(left(d), right(d)))
        check(lambda d, left=left: torch.sparse.mm(left(d), right(d)))
        check(lambda d, left=left: left(d) @ right(d)[:, 0])
        check(lambda d, left=left: torch.addmm(torch.ones(2, 2, device=d), left(d), right(d), beta=0.5))
        check(lambda d, left=left: torch.sparse.addmm(torch.ones(2, 2, device=d), left(d), right(d)))
        check(lambda d, left=left: torch.mm(left(d), right(d), out=torch.empty(0, device=d)))
    check(lambda d: torch.sparse.mm(coo(d), coo(d).t()))
    check(lambda d: csr(d) + csr(d))
    check(lambda d: torch.smm(coo(d), right(d)))
    check(lambda d: torch.hspmm(coo(d), right(d)))
    check(lambda d: torch.bmm(torch.stack([coo(d), coo(d)]), torch.stack([right(d), right(d)])))
    check(
        lambda d: torch.sparse.sampled_addmm(csr(d), torch.ones(2, 4, device=d), torch.ones(4, 3, device=d))
    )
    for reduce in ("sum", "mean", "amax", "amin"):
        check(lambda d, reduce=reduce: torch.sparse.mm(csr(d), right(d), reduce))


def test_in_place_forms_change_the_callers_tensor() -> None:
    def after(change: Callable[[torch.Tensor], Any]) -> None:
        for make in (coo, lambda d: coo(d).coalesce().to_sparse_csr()):

            def run(device: str, make: Callable[[str], torch.Tensor] = make) -> torch.Tensor:
                tensor = make(device)
                assert change(tensor) is tensor
                return tensor

            check(run)

    after(lambda t: t.add_(t.clone()))
    after(lambda t: t.add_(t))
    after(lambda t: t.mul_(3))
    after(lambda t: t.neg_())
    after(lambda t: t.zero_())
    check(lambda d: coo(d).sub_(coo(d)))
    check(lambda d: coo(d).div_(2))
    check(lambda d: coo(d).mul_(coo(d)))
    check(lambda d: coo(d).transpose_(0, 1))
    check(lambda d: torch.ones(2, 3, device=d).add_(coo(d), alpha=2))
    check(lambda d: torch.ones(2, 2, device=d).addmm_(coo(d), torch.ones(3, 2, device=d)))


def test_out_forms() -> None:
    check(lambda d: torch.add(coo(d), coo(d), out=torch.empty(0, 0, layout=torch.sparse_coo, device=d)))
    check(lambda d: torch.mul(coo(d), coo(d), out=coo(d)))
    csr = lambda d: coo(d).coalesce().to_sparse_csr()  # noqa: E731
    check(lambda d: torch.add(csr(d), csr(d), out=torch.empty(2, 3, layout=torch.sparse_csr, device=d)))


def test_what_is_written_in_place_keeps_its_components() -> None:
    tensor = sparse(torch.sparse_csr, device="flagos")
    values = tensor.values()
    tensor.mul_(2)
    assert values.tolist() == tensor.values().tolist() == [2, 4, 6, 8]


def test_printing_shows_components_and_device() -> None:
    assert repr(coo("flagos")) == (
        "tensor(indices=tensor([[1, 0, 1, 1],\n                       [2, 1, 0, 2]]),\n"
        "       values=tensor([1., 2., 3., 4.]),\n"
        "       device='flagos:0', size=(2, 3), nnz=4, layout=torch.sparse_coo)"
    )
    text = repr(sparse(torch.sparse_csr, device="flagos"))
    assert "device='flagos:0', size=(4, 3), nnz=4" in text
    assert "crow_indices=tensor([0, 1, 3, 3, 4])" in text


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_saving_loading_and_copying(layout: torch.layout) -> None:
    tensor = sparse(layout, device="flagos")
    file = io.BytesIO()
    torch.save({"x": tensor}, file)
    file.seek(0)
    assert_same_sparse(torch.load(file)["x"], sparse(layout))
    assert_same_sparse(copy.deepcopy(tensor), sparse(layout))


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.SGD, {"lr": 0.1}),
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "foreach": False}),
        (torch.optim.SGD, {"lr": 0.1, "foreach": True}),
        (torch.optim.SparseAdam, {"lr": 0.1}),
        (torch.optim.Adagrad, {"lr": 0.1}),
    ],
)
def test_an_embedding_with_sparse_gradients_trains(
    optimizer: type[torch.optim.Optimizer], options: dict[str, Any]
) -> None:
    def train(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        torch.manual_seed(0)
        layer = torch.nn.Embedding(10, 4, sparse=True).to(device)
        steps = optimizer(layer.parameters(), **options)
        for i in range(4):
            steps.zero_grad()
            layer(torch.tensor([[1, 2, 2], [3, i, 9]], device=device)).pow(2).sum().backward()
            steps.step()
        assert layer.weight.grad is not None
        return layer.weight, layer.weight.grad

    check(train)


def test_an_embedding_bag_has_sparse_gradients() -> None:
    def gradient(device: str) -> torch.Tensor | None:
        torch.manual_seed(0)
        layer = torch.nn.EmbeddingBag(10, 4, sparse=True, mode="sum").to(device)
        places = torch.tensor([1, 2, 2, 9], device=device), torch.tensor([0, 2], device=device)
        layer(*places).pow(2).sum().backward()
        return layer.weight.grad

    check(gradient)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.to_sparse(),
        lambda x: x.to_sparse_csr(),
        lambda x: x.to_sparse_csc(),
        lambda x: x.to_sparse_bsr((2, 1)),
        lambda x: x.to_sparse_bsc((2, 1)),
        lambda x: (x.to_sparse() + x.to_sparse()).coalesce(),
        lambda x: x.to_sparse() * x.to_sparse(),
        lambda x: torch.sparse.mm(x.to_sparse(), torch.ones(3, 2, device=x.device)),
        lambda x: torch.sparse.softmax(x.to_sparse(), 1),
        lambda x: torch.sparse.sum(x.to_sparse(), 1),
        lambda x: x.to_sparse().to_dense(),
    ],
)
def test_gradients_go_through_sparse_results(compute: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def gradient(device: str) -> torch.Tensor | None:
        x = dense().to(device, copy=True).requires_grad_()
        result = compute(x)
        (result if result.layout == torch.strided else result.to_dense()).pow(2).sum().backward()
        return x.grad

    check(gradient)


def test_sparse_leaves_have_gradients() -> None:
    def products(device: str) -> tuple[torch.Tensor | None, ...]:
        left = coo(device).coalesce().detach().requires_grad_()
        right = torch.arange(6.0).view(3, 2).to(device, copy=True).requires_grad_()
        torch.sparse.mm(left, right).pow(2).sum().backward()
        return left.grad, right.grad

    def reduced(device: str) -> tuple[torch.Tensor | None, ...]:
        results: list[torch.Tensor | None] = []
        for reduce in ("sum", "mean", "amax", "amin"):
            left = coo(device).coalesce().to_sparse_csr().detach().requires_grad_()
            right = torch.arange(6.0).view(3, 2).to(device, copy=True).requires_grad_()
            torch.sparse.mm(left, right, reduce).pow(2).sum().backward()
            results += [left.grad, right.grad]
        return tuple(results)

    def sampled(device: str) -> tuple[torch.Tensor | None, ...]:
        given = sparse(torch.sparse_csr, device=device).detach().requires_grad_()
        left = torch.ones(4, 2, device=device, requires_grad=True)
        right = torch.ones(2, 3, device=device, requires_grad=True)
        torch.sparse.sampled_addmm(given, left, right).to_dense().sum().backward()
        return given.grad, left.grad, right.grad

    def values(device: str) -> torch.Tensor | None:
        given = torch.ones(3, device=device, requires_grad=True)
        indices = torch.tensor([[0, 0, 1]], device=device)
        torch.sparse_coo_tensor(indices, given, (3,)).coalesce().values().pow(2).sum().backward()
        return given.grad

    for compute in (products, reduced, sampled, values):
        check(compute)


MISTAKES: dict[str, Callable[[str], object]] = {
    "values that are not coalesced": lambda d: coo(d).values(),
    "indices of another layout": lambda d: coo(d).crow_indices(),
    "indices out of bounds": lambda d: torch.sparse_coo_tensor(
        torch.tensor([[5]], device=d), torch.ones(1, device=d), (3,), check_invariants=True
    ),
    "inner sizes": lambda d: torch.sparse.mm(coo(d), torch.ones(2, 2, device=d)),
    "sizes of a sum": lambda d: coo(d) + torch.sparse_coo_tensor((4, 4), device=d),
    "a copy of another layout": lambda d: torch.ones(2, 3, device=d).copy_(coo(d)),
    "numpy": lambda d: coo(d).numpy(),
    "its storage": lambda d: coo(d).untyped_storage(),
    "an operator without a sparse kernel": lambda d: coo(d).exp(),
    "a view": lambda d: coo(d).view(6),
    "a composite without a sparse kernel": lambda d: torch.allclose(coo(d), coo(d)),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_raise_what_they_raise_on_the_cpu(mistake: Callable[[str], object]) -> None:
    with pytest.raises(Exception) as on_cpu:  # noqa: PT011
        mistake("cpu")
    with pytest.raises(on_cpu.type):
        mistake("flagos")
    check(lambda d: coo(d).coalesce())  # usable after the error


def test_what_has_no_sparse_kernel_says_so_by_operator_and_key() -> None:
    for call, name in ((lambda: coo("flagos").exp(), "exp"), (lambda: coo("flagos").view(6), "view")):
        with pytest.raises(
            NotImplementedError, match=rf"aten::{name}'.*\(Sparse\w+\).*\.to_dense\(\)"
        ) as raised:
            call()
        assert len(str(raised.value)) < 250
    tensor = sparse(torch.sparse_csr, device="flagos")
    with pytest.raises(NotImplementedError, match=r"aten::equal'.*\(SparseCsr\w+\)"):
        torch.equal(tensor, tensor)


def test_indices_that_lie_raise_instead_of_being_followed() -> None:
    far = torch.tensor([[10**12]], device="flagos")
    lying = torch.sparse_coo_tensor(far, torch.ones(1, device="flagos"), (3,))
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        lying.to_dense()
    rows = torch.tensor([0, 7, 9], device="flagos")
    lying = torch.sparse_csr_tensor(rows, rows[:2], torch.ones(2, device="flagos"), (2, 3))
    with pytest.raises(RuntimeError, match="indices"):
        lying.to_dense()
    assert torch.ones(2, device="flagos").sum().item() == 2


def test_operands_on_several_devices_are_refused() -> None:
    for one, other in ((coo("flagos"), coo("cpu")), (torch.ones(2, 3, device="flagos"), coo("cpu")),
                       (coo("flagos:1"), coo("flagos:0")), (coo("flagos"), torch.ones(2, 3))):  # fmt: skip
        with pytest.raises(RuntimeError, match="same device"):
            one + other


def test_quantized_and_nested_tensors_are_refused_by_key() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(NotImplementedError, match="NestedTensorPrivateUse1"):
        nested.to("flagos")
    with pytest.raises(NotImplementedError, match="NestedTensorPrivateUse1"):
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device="flagos").sin()
    with pytest.raises(NotImplementedError, match="QuantizedPrivateUse1"):
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8).to("flagos")
    with pytest.raises(NotImplementedError, match="QuantizedPrivateUse1"):
        torch.quantize_per_tensor(torch.ones(2, device="flagos"), 0.1, 0, torch.quint8)


def test_a_side_stream_takes_sparse_tensors_in_its_order() -> None:
    stream = torch.flagos.Stream()
    x = torch.ones(300, 300, device="flagos")
    with torch.flagos.stream(stream):
        for _ in range(10):
            x = x @ torch.eye(300, device="flagos")
        got = (x.tril().to_sparse() * 2).coalesce()
    stream.synchronize()
    assert_same_sparse(got, (torch.ones(300, 300).tril().to_sparse() * 2).coalesce())


def test_threads_share_a_session() -> None:
    wrong: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(20):
                x = ((torch.arange(40) * (seed + i)) % 3).float().view(5, 8)
                assert_same_sparse(x.to("flagos").to_sparse() * seed, x.to_sparse() * seed)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]


def test_modules_take_sparse_parameters_along() -> None:
    module = torch.nn.ParameterList([torch.nn.Parameter(coo().coalesce()), torch.nn.Parameter(dense())])
    module.to("flagos")
    assert_same_sparse(module[0].detach(), coo().coalesce())
    layer = torch.nn.Embedding(10, 4, sparse=True)
    layer(torch.tensor([1, 1])).sum().backward()
    expected = copy.deepcopy(layer.weight.grad)
    layer.to("flagos")
    assert layer.weight.grad is not None
    assert_same_sparse(layer.weight.grad, expected)


def test_nothing_leaks() -> None:
    torch.flagos.synchronize()
    before = torch.flagos.memory_allocated()
    tensor = coo("flagos")
    for _ in range(30):
        tensor = (tensor + coo("flagos")).coalesce()
        tensor.mul_(0.5)
    del tensor
    torch.flagos.synchronize()
    assert torch.flagos.memory_allocated() == before
