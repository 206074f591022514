# SPDX-License-Identifier: Apache-2.0
"""Device indices on four devices: an operand's device counts, never the current one of the moment.

# regressions.md 1, 2, 3, 4, 5, 10
"""

import pickle
import threading

import pytest
import torch
from conftest import DEVICES
from support.checks import assert_same

OTHERS = range(1, DEVICES)


def test_four_devices_are_there() -> None:
    assert torch.flagos.is_available()
    assert torch.flagos.device_count() == torch.accelerator.device_count() == DEVICES
    assert torch.accelerator.current_accelerator() == torch.device("flagos")
    assert torch.flagos.current_device() == 0
    properties = torch.flagos.get_device_properties(1)
    assert properties.name == torch.flagos.get_device_name("flagos:1") != ""
    assert properties.total_memory > 2**30
    assert torch.flagos.get_device_capability() == (properties.major, properties.minor)
    assert len(properties) == 6
    assert properties.multi_processor_count >= 1
    assert properties.warp_size is properties.L2_cache_size is properties.max_threads_per_block is None
    assert len({torch.flagos.get_device_properties(i).uuid for i in range(DEVICES)}) == DEVICES


@pytest.mark.parametrize("index", range(DEVICES))
def test_factories_honour_the_index(index: int) -> None:
    where = f"flagos:{index}"
    for tensor in (
        torch.ones(4, device=where),
        torch.empty(0, device=where),
        torch.empty(2, 3, device=where),
        torch.arange(5, device=where),
        torch.eye(3, device=where),
        torch.full((2,), 3.0, device=where),
        torch.tensor([1, 2], device=where),
        torch.rand(3, device=where),
        torch.randint(5, (3,), device=where),
        torch.randperm(4, device=where),
        torch.zeros_like(torch.ones(2, device=where)),
        torch.ones(2).to(where),
        torch.ones(2, device=where).new_empty(3),
    ):
        assert tensor.device == torch.device("flagos", index)
        assert tensor.get_device() == index
    assert torch.flagos.current_device() == 0


@pytest.mark.parametrize("index", OTHERS)
def test_operators_run_where_their_operands_are(index: int) -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    y = x.to(f"flagos:{index}")
    assert torch.flagos.current_device() == 0
    assert_same(y + 1, x + 1, device=index)
    assert_same(y * torch.tensor(2.0), x * 2, device=index)  # an operand of the CPU follows
    assert_same(torch.tensor(2.0) * y, x * 2, device=index)
    assert_same(y.sum(), x.sum(), device=index)
    assert_same(torch.cat([y, y]), torch.cat([x, x]), device=index)
    assert_same(y.clone().add_(y), x + x, device=index)
    assert_same(torch.where(y > 1, y, 0.0), torch.where(x > 1, x, 0.0), device=index)
    assert y.multinomial(2).device.index == index
    assert y[y > 1].device.index == index
    assert y.nonzero().device.index == index
    assert_same(torch._foreach_add([y, y], 1.0)[1], x + 1, device=index)
    assert torch.flagos.current_device() == 0


@pytest.mark.parametrize("index", OTHERS)
def test_tensors_without_bytes_stay_where_they_are(index: int) -> None:
    where = torch.device("flagos", index)
    x = torch.ones(3, device=where)
    assert x.set_().device == x.untyped_storage().device == where
    assert x.shape == (0,)
    for _ in range(2):  # a first call and a known one
        y = torch.ones(0, 4, device=where) + 1
        assert y.device == y.untyped_storage().device == where
        assert y.sum().item() == 0
    x.resize_(2).fill_(5)
    assert x.device == x.untyped_storage().device == where
    assert x.tolist() == [5, 5]


def test_a_device_without_index_is_the_current_one() -> None:
    with torch.flagos.device(2):
        assert torch.flagos.current_device() == torch.accelerator.current_device_index() == 2
        assert torch.ones(1, device="flagos").device.index == 2
        assert torch.ones(1).to("flagos").device.index == 2
        assert torch.ones(1).flagos().device.index == 2
        assert torch.ones(1, device="flagos:1").device.index == 1
        assert torch.ones(1, device="flagos:3").to("flagos").device.index == 2
        with torch.flagos.device(None), torch.flagos.device(-1):
            assert torch.flagos.current_device() == 2
        with torch.flagos.device_of(torch.empty(0, device="flagos:3")):
            assert torch.flagos.current_device() == 3
        with torch.flagos.device_of(torch.empty(0)):
            assert torch.flagos.current_device() == 2
    assert torch.flagos.current_device() == 0
    torch.flagos.set_device("flagos:1")
    try:
        assert torch.ones(1, device="flagos").device.index == 1
        torch.flagos.set_device(-1)
        assert torch.flagos.current_device() == 1
        torch.flagos.synchronize(3)
        assert torch.flagos.current_device() == 1
    finally:
        torch.accelerator.set_device_index(0)
    assert torch.flagos.current_device() == 0


def test_an_exception_restores_the_device() -> None:
    with pytest.raises(KeyError), torch.flagos.device(3):
        raise KeyError
    assert torch.flagos.current_device() == 0


def test_the_current_device_belongs_to_the_thread() -> None:
    seen: list[int] = []

    def work() -> None:
        seen.append(torch.flagos.current_device())
        torch.flagos.set_device(3)
        seen.append(torch.ones(1, device="flagos").device.index)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert seen == [0, 3]
    assert torch.flagos.current_device() == 0


@pytest.mark.parametrize("bad", [DEVICES, 63, 64, 127])
def test_a_device_that_is_not_there_is_refused(bad: int) -> None:
    with pytest.raises(RuntimeError, match=rf"{bad}"):
        torch.ones(1, device=f"flagos:{bad}")
    with pytest.raises(RuntimeError, match=rf"{bad}"):
        torch.flagos.set_device(bad)
    with pytest.raises(RuntimeError, match=rf"flagos:{bad} does not exist.*{DEVICES}"):
        torch.flagos.get_device_properties(bad)
    torch.ones(1, device="flagos")
    with pytest.raises(RuntimeError, match=rf"flagos:{bad} does not exist.*{DEVICES}"):
        torch.accelerator.synchronize(bad)
    assert torch.ones(2, device="flagos").tolist() == [1, 1], "the session goes on"
    assert torch.flagos.current_device() == 0


def test_indices_are_read_as_written() -> None:
    # In eight bits, as torch.device counts, 256 would be device 0.
    with pytest.raises(RuntimeError, match="256"):
        torch.flagos.set_device("flagos:256")
    with pytest.raises(RuntimeError, match="256"):
        torch.flagos.set_device(256)
    with pytest.raises(TypeError):
        torch.flagos.set_device(True)
    for wrong in ("cpu", "flagos:", "flagos:-1", "flagos:1x", "flagos:01", "cuda:0"):
        with pytest.raises((RuntimeError, ValueError)):
            torch.flagos.set_device(wrong)
    with pytest.raises(ValueError, match="index"):
        torch.flagos.set_device("flagos")


def test_operands_on_two_devices_are_refused_as_pytorch_does() -> None:
    a, b = torch.ones(2, device="flagos:0"), torch.ones(2, device="flagos:1")
    with pytest.raises(
        RuntimeError, match=r"Expected all tensors to be on the same device.*flagos:1.*flagos:0"
    ):
        a + b
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        a @ torch.ones(2)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.cat([a, b])
    assert (a + 1).tolist() == [2, 2]


def test_copies_between_devices() -> None:
    x = torch.randn(100, 3)
    y = x.to("flagos:1")
    assert_same(y.to("flagos:2"), x, device=2)
    assert_same(y.t().to("flagos:3"), x.t(), device=3)
    target = torch.empty(3, 100, dtype=torch.float64, device="flagos:0")
    target.copy_(y.t())
    assert_same(target, x.t().double().contiguous(), device=0)
    assert torch.equal(y.to("flagos:3").to("flagos:0").cpu(), x)


def test_modules_move_and_keep_what_they_are() -> None:
    first = torch.nn.Linear(3, 3)
    model = torch.nn.Sequential(first, torch.nn.ReLU(), torch.nn.Linear(3, 3))
    model[2].weight = first.weight  # tied
    weight, expected = model[0].weight, model(torch.ones(3))
    model.to("flagos:2")
    assert model[0].weight is weight is model[2].weight
    assert weight.device == torch.device("flagos:2")
    torch.testing.assert_close(model(torch.ones(3, device="flagos:2")).cpu(), expected)
    assert torch.flagos.current_device() == 0
    model.cpu()
    assert model[0].weight is weight
    torch.testing.assert_close(model(torch.ones(3)), expected)
    assert model.flagos(1)[0].weight.device.index == 1


def test_backward_leaves_gradients_on_each_device() -> None:
    a = torch.tensor([1.0, 2.0], device="flagos:1", requires_grad=True)
    b = torch.tensor([3.0, 4.0], device="flagos:2", requires_grad=True)
    ((a * 2).to("flagos:3") * b.to("flagos:3")).sum().backward()
    assert a.grad is not None
    assert b.grad is not None
    assert_same(a.grad, torch.tensor([6.0, 8.0]), device=1)
    assert_same(b.grad, torch.tensor([2.0, 4.0]), device=2)
    assert torch.flagos.current_device() == 0


def test_a_saved_tensor_comes_back_on_its_device(tmp_path: object) -> None:
    path = f"{tmp_path}/tensors.pt"
    x = torch.arange(5.0)
    torch.save({"x": x.to("flagos:2"), "view": x.to("flagos:1")[1:3]}, path)
    loaded = torch.load(path)
    assert_same(loaded["x"], x, device=2)
    assert_same(loaded["view"], x[1:3], device=1)
    assert_same(torch.load(path, map_location="flagos:3")["x"], x, device=3)
    assert_same(torch.load(path, map_location="flagos")["x"], x, device=0)
    assert torch.load(path, map_location="cpu")["x"].tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="9"):
        torch.load(path, map_location="flagos:9")
    assert_same(pickle.loads(pickle.dumps(x.to("flagos:1"))), x, device=1)
