# SPDX-License-Identifier: Apache-2.0
"""Dispatch, types and layouts. The numbers are those of README.md."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from agreement import DEVICE, agrees
from torch.nn import functional as F


def counted(device: str, *shape: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return torch.arange(float(count), device=device).reshape(shape) / 7 - 1


CASES: dict[str, Callable[[str], Any]] = {
    "11 the same call on two devices": lambda d: (counted(d, 3) * 2, counted(d, 4) * 2),
    "44 draws lie in [0, 1)": lambda d: [(r := torch.rand(100_001, device=d)).min() >= 0, r.max() < 1],
    "44 integers use all 64 bits": lambda d: torch.empty(9, dtype=torch.int64, device=d).random_(
        -(2**63), 2**63 - 1
    ),
    "47 zeros_like": lambda d: torch.zeros_like(counted(d, 2, 3).t()),
    "48 a product in place with a number": lambda d: counted(d, 5).mul_(2.0),
    "49 a sum over everything": lambda d: (counted(d, 3, 4).sum(), counted(d, 3, 4).sum(dim=None)),
    "50 multi-tensor operators with a tensor": lambda d: torch._foreach_mul(
        [counted(d, n) for n in (1, 3)], torch.tensor(3.0, device=d)
    ),
    "51 convolution without bias": lambda d: F.conv2d(counted(d, 1, 2, 5, 5), counted(d, 3, 2, 3, 3)),
    "51 a loss with weights": lambda d: F.cross_entropy(
        counted(d, 4, 3), torch.tensor([0, 2, 1, 1], device=d), weight=counted(d, 3) + 2
    ),
    "51 one bound of a clamp": lambda d: torch.clamp(counted(d, 6), min=counted(d, 6) * 0.5),
    "51 batch norm without weight": lambda d: F.batch_norm(counted(d, 4, 3), None, None, training=True),
    "59 a convolution in three dimensions": lambda d: F.conv3d(
        counted(d, 1, 2, 4, 4, 4), counted(d, 2, 2, 2, 2, 2), padding=1
    ),
    "66 a transposed operand": lambda d: torch.exp(counted(d, 3, 4).t()),
    "66 ones_like keeps strides": lambda d: torch.ones_like(counted(d, 3, 4).t()),
    "67 cat with an empty vector": lambda d: torch.cat([torch.empty(0, device=d), counted(d, 2, 3, 2)], -2),
    "68 cat behind a prefix": lambda d: torch.cat([counted(d, 2, 3, 4), counted(d, 2, 1, 4) + 9], -2),
    "69 a boolean number and a tensor": lambda d: (
        torch.tensor(True, device=d) & torch.tensor([True, False], device=d),
        torch.arange(4, device=d) & torch.tensor([True, False, True, True], device=d),
    ),
    "70 less a number": lambda d: torch.sub(counted(d, 5), 3.0),
    "71 the type of two types": lambda d: counted(d, 3).half() + counted(d, 3),
    "71 double stays double": lambda d: counted(d, 3).double() / 3,
    "71 small integers": lambda d: (
        -torch.arange(3, dtype=torch.int16, device=d),
        -torch.arange(3, dtype=torch.uint8, device=d),
    ),
    "72 a range of halves": lambda d: torch.arange(0.0, 3.0, 0.5, device=d),
    "103 log_softmax": lambda d: F.log_softmax(counted(d, 3, 5), -1),
    "142 no dimension in three spellings": lambda d: [counted(d, 2, 3).sum(dim) for dim in (None, (), [])],
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_cpu(name: str) -> None:
    agrees(CASES[name])


def test_74_out_is_the_callers_tensor_and_resized() -> None:
    x = counted(DEVICE, 3, 4)
    out = torch.empty(0, device=DEVICE)
    assert torch.where(x > 0, x, -x, out=out) is out
    assert out.cpu().equal(counted("cpu", 3, 4).abs())
    total = torch.empty(0, device=DEVICE)
    assert torch.sum(x, 1, out=total) is total
    assert total.cpu().equal(counted("cpu", 3, 4).sum(1))
    nan_total = torch.empty(3, device=DEVICE)
    assert torch.nansum(x, 1, out=nan_total) is nan_total
    assert nan_total.cpu().equal(counted("cpu", 3, 4).sum(1))


def test_55_a_scaler_sees_an_overflow() -> None:
    parameter = torch.nn.Parameter(torch.ones(2, device=DEVICE))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scaler = torch.amp.GradScaler("flagos", init_scale=4.0)
    scaler.scale((parameter * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == [1, 1], "the step is left out"
    assert scaler.get_scale() == 2.0


def test_28_an_index_is_complete_when_it_is_used() -> None:
    table = torch.arange(1000.0, device=DEVICE)
    index = torch.zeros(8, dtype=torch.int64, device=DEVICE)
    for step in range(200):
        index = (index * 31 + step) % 1000
        picked = table.index_select(0, index)
    expected = 0
    for step in range(200):
        expected = (expected * 31 + step) % 1000
    assert picked.tolist() == [float(expected)] * 8


def test_30_events_with_time_can_always_be_made() -> None:
    start, end = (torch.flagos.Event(enable_timing=True) for _ in range(2))
    start.record()
    counted(DEVICE, 64, 64) @ counted(DEVICE, 64, 64)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0


def test_13_properties_are_true() -> None:
    properties = torch.flagos.get_device_properties(1)
    assert properties.total_memory == torch.flagos.mem_get_info(1)[1]
    assert properties.total_memory > torch.flagos.memory_reserved(1)
    assert properties.multi_processor_count >= 1
    assert properties.name
