# SPDX-License-Identifier: Apache-2.0
"""nn.DataParallel spreads over devices of flagos what it computes, and leaves the CPU's programs alone."""

import copy
import warnings

import pytest
import torch
from conftest import DEVICES
from support.checks import assert_same
from support.program import run
from torch import nn
from torch.nn.parallel import comm, data_parallel

ALL = list(range(DEVICES))


def _model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


@pytest.mark.parametrize("device_ids", [[0], [2], [0, 1], [1, 3], ALL], ids=str)
def test_outputs_and_gradients_are_those_of_one_device(device_ids: list[int]) -> None:
    expected, x = _model(), torch.randn(10, 3)
    parallel = nn.DataParallel(copy.deepcopy(expected).to(f"flagos:{device_ids[0]}"), device_ids=device_ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in (x, x.to(f"flagos:{device_ids[0]}")):
            parallel.zero_grad()
            expected.zero_grad()
            output = parallel(data)
            output.square().sum().backward()
            expected(x).square().sum().backward()
            assert output.device == torch.device("flagos", device_ids[0])
            torch.testing.assert_close(output.cpu(), expected(x))
            for got, want in zip(parallel.parameters(), expected.parameters(), strict=True):
                assert got.grad is not None
                assert got.grad.device == got.device
                torch.testing.assert_close(got.grad.cpu(), want.grad)
    assert torch.flagos.current_device() == 0


def test_the_input_gets_its_gradient() -> None:
    parallel = nn.DataParallel(_model().flagos(), device_ids=[0, 1, 2])
    x = torch.randn(7, 3, device="flagos", requires_grad=True)
    y = x.detach().cpu().requires_grad_()
    parallel(x).sum().backward()
    _model()(y).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad.cpu(), y.grad)


def test_a_module_of_the_cpu_stays_on_the_cpu() -> None:
    run(
        """
        import torch
        for model in (torch.nn.Linear(3, 2), torch.nn.ReLU()):
            parallel = torch.nn.DataParallel(model)
            assert parallel.device_ids == []
            x = torch.ones(8, 3)
            assert torch.equal(parallel(x), model(x)) and parallel(x).device.type == "cpu"
        assert not torch.flagos.is_initialized()
        """,
        "embedded",
    )


def test_a_module_that_moves_later_takes_all_devices() -> None:
    seen: set[int] = set()

    class Seen(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.add(x.get_device())
            return x

    parallel = nn.DataParallel(nn.Sequential(_model(), Seen())).to("flagos")
    x = torch.ones(2 * DEVICES, 3)
    torch.testing.assert_close(parallel(x).cpu(), _model()(x))
    assert seen == set(ALL)
    assert parallel.device_ids == ALL
    assert set(parallel.state_dict()) == {f"module.0.{name}" for name in _model().state_dict()}


def test_buffers_of_the_first_device_are_the_modules() -> None:
    parallel = nn.DataParallel(nn.BatchNorm1d(3).flagos(), device_ids=[0, 1])
    alone = nn.BatchNorm1d(3)
    x = torch.randn(8, 3)
    parallel(x)
    alone(x[:4])
    torch.testing.assert_close(parallel.module.running_mean.cpu(), alone.running_mean)
    assert parallel.module.num_batches_tracked.item() == 1


def test_containers_and_keywords() -> None:
    class Pair(nn.Module):
        def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"product": x * scale, "sum": (x + scale).sum().reshape(1)}

    parallel = nn.DataParallel(Pair(), device_ids=[0, 1])
    x = torch.arange(6.0, device="flagos")
    got = parallel(x, scale=x)
    assert got["product"].tolist() == [0, 1, 4, 9, 16, 25]
    assert got["sum"].tolist() == [6, 24]


def test_autocast_reaches_the_replicas() -> None:
    parallel = nn.DataParallel(nn.Linear(3, 2).flagos(), device_ids=[0, 1])
    with torch.autocast("flagos", torch.bfloat16):
        assert parallel(torch.ones(4, 3)).dtype == torch.bfloat16
    assert parallel(torch.ones(4, 3)).dtype == torch.float32


def test_errors_of_replicas_are_raised() -> None:
    parallel = nn.DataParallel(_model().flagos(), device_ids=[0, 1])
    with pytest.raises(RuntimeError, match=r"replica 0 on device 0"):
        parallel(torch.ones(4, 5))
    with pytest.raises(RuntimeError, match="flagos:1"):
        nn.DataParallel(_model().flagos(), device_ids=[1, 2])(torch.ones(2, 3))


def test_the_functional_form() -> None:
    model, x = _model(), torch.ones(5, 3)
    got = data_parallel(copy.deepcopy(model).flagos(), x, device_ids=[0, 1], output_device="flagos:0")
    torch.testing.assert_close(got.cpu(), model(x))


def test_scatter_and_gather() -> None:
    x = torch.arange(12.0).reshape(6, 2)
    parts = comm.scatter(x, [0, 1, 3])
    for part, index, want in zip(parts, (0, 1, 3), x.chunk(3), strict=True):
        assert_same(part, want, device=index)
    sized = comm.scatter(x, ["flagos:2", "flagos:1"], chunk_sizes=[5, 1])
    assert [part.shape[0] for part in sized] == [5, 1]
    assert comm.scatter(x, [0, 1], dim=1)[1].tolist() == x[:, 1:].tolist()
    with pytest.raises(RuntimeError):
        comm.scatter(x, [0, 1], chunk_sizes=[1, 1, 4])
    out = [torch.empty(4, 2, device="flagos:1"), torch.empty(2, 2, device="flagos:2")]
    comm.scatter(x, out=out)
    assert_same(out[0], x[:4], device=1)
    assert_same(out[1], x[4:], device=2)

    assert_same(comm.gather(parts, destination=2), x, device=2)
    assert_same(comm.gather(parts), x, device=0)
    assert comm.gather(parts, destination="cpu").tolist() == x.tolist()
    whole = torch.empty(6, 2, device="flagos:3")
    assert comm.gather(parts, out=whole) is whole
    assert_same(whole, x, device=3)
    with pytest.raises(RuntimeError, match="size 6"):
        comm.gather(parts, out=torch.empty(5, 2, device="flagos"))


def test_broadcast_and_sums() -> None:
    x = torch.arange(3.0)
    on_one = x.to("flagos:1")
    copies = comm.broadcast(on_one, [1, 0, 2])
    for index, tensor in zip((1, 0, 2), copies, strict=True):
        assert_same(tensor, x, device=index)
    assert copies[0].data_ptr() == on_one.data_ptr()
    assert_same(comm.broadcast(x, out=[torch.empty(3, device="flagos:2")])[0], x, device=2)
    grouped = comm.broadcast_coalesced([on_one, on_one + 1], [1, 3])
    assert_same(grouped[1][1], x + 1, device=3)
    assert_same(comm.reduce_add([on_one, x.to("flagos:2")], destination=1), x * 2, device=1)
    sums = comm.reduce_add_coalesced([[on_one, on_one], [x.to("flagos:0"), x.to("flagos:0")]], destination=0)
    assert_same(sums[1], x * 2, device=0)
