# SPDX-License-Identifier: Apache-2.0
"""Views share their storage, and none of them needs the executor.

# regressions.md 45, 46, 63; contract.md 35
"""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from support.checks import assert_same

View = Callable[[torch.Tensor], torch.Tensor]

VIEWS: dict[str, View] = {
    "view": lambda x: x.view(6, 4),
    "reshape": lambda x: x.reshape(8, 3),
    "select": lambda x: x.select(1, 2),
    "slice": lambda x: x[:, 1:, ::2],
    "narrow": lambda x: x.narrow(2, 1, 2),
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.permute(2, 0, 1),
    "expand": lambda x: x[:, :1].expand(2, 5, 4),
    "squeeze": lambda x: x[:1].squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "diagonal": lambda x: x[0].diagonal(),
    "as_strided": lambda x: x.as_strided((2, 2), (3, 1), 4),
    "split": lambda x: x.split(2, dim=2)[1],
    "chunk": lambda x: x.chunk(3, dim=1)[2],
    "unbind": lambda x: x.unbind(2)[3],
    "movedim": lambda x: x.movedim(0, -1),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "view_as_complex": lambda x: torch.view_as_complex(x.view(2, 3, 2, 2)),
    "dtype": lambda x: x.view(torch.int32),
    "detach": lambda x: x.detach(),
    "tensor_split": lambda x: x.tensor_split(2, dim=1)[1],
    "swapaxes": lambda x: x.swapaxes(0, 2),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_the_same_memory(name: str) -> None:
    make = VIEWS[name]
    host = torch.arange(24.0).view(2, 3, 4)
    device = host.to("flagos")
    expected, view = make(host), make(device)
    assert_same(view, expected)
    assert view.untyped_storage().data_ptr() == device.untyped_storage().data_ptr()
    assert view.storage_offset() == expected.storage_offset()
    assert view.data_ptr() - device.data_ptr() == expected.data_ptr() - host.data_ptr()
    if name != "expand":
        view.zero_()
        expected.zero_()
        assert_same(device, host)
    device.fill_(1.0)
    host.fill_(1.0)
    assert_same(view, expected)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_sends_nothing(name: str) -> None:
    device = torch.arange(24.0, device="flagos").view(2, 3, 4)
    before = torch.flagos.session_info()
    VIEWS[name](device)
    after = torch.flagos.session_info()
    assert after["calls"] == before["calls"]


def test_the_counter_of_calls_counts() -> None:
    device = torch.ones(2, device="flagos")
    before = torch.flagos.session_info()["calls"]
    device + 1
    assert torch.flagos.session_info()["calls"] == before + 1


def test_repeat_is_exact() -> None:
    x = torch.randn(3, 5)
    assert_same(x.to("flagos").repeat(2, 3), x.repeat(2, 3))
    assert_same(x.to("flagos").repeat_interleave(3, dim=1), x.repeat_interleave(3, dim=1))


def test_addresses_are_real_to_pytorch_and_to_nobody_else() -> None:
    tensors = [torch.empty(n, device="flagos") for n in (1, 100, 10_000, 1_000_000)]
    ranges = sorted((t.data_ptr(), t.data_ptr() + t.nbytes) for t in tensors)
    assert all(start != 0 and start % 64 == 0 for start, _ in ranges)
    assert all(end <= start for (_, end), (start, _) in pairwise(ranges)), "they overlap"
    assert torch.empty(0, device="flagos").data_ptr() == 0


def test_a_slice_of_a_storage_is_the_same_memory() -> None:
    x = torch.arange(6.0, device="flagos")
    part = x.untyped_storage()[8:20]
    assert (part.nbytes(), part.device) == (12, x.device)
    assert part.tolist() == x.cpu().untyped_storage()[8:20].tolist()
    y = torch.empty(0, device="flagos").set_(part, 0, (3,))
    assert y.tolist() == [2, 3, 4]
    y += 10
    assert x.tolist() == [0, 1, 12, 13, 14, 5]
    y.record_stream(torch.flagos.current_stream())


def test_set_and_resize() -> None:
    x = torch.arange(6.0, device="flagos")
    y = torch.empty(0, device="flagos")
    y.set_(x)
    assert y.tolist() == x.tolist()
    y[0] = 9
    assert x[0].item() == 9
    z = torch.empty(0, device="flagos")
    z.set_(x.untyped_storage(), 2, (2, 2), (1, 2))
    assert z.tolist() == [[2, 4], [3, 5]]
    x.resize_(2, 2)
    assert x.tolist() == [[9, 1], [2, 3]]
    x.resize_(20)
    assert x[:6].tolist() == [9, 1, 2, 3, 4, 5]
    p = torch.nn.Parameter(torch.zeros(2))
    p.data = torch.ones(3, device="flagos")
    assert p.device.type == "flagos"
    assert p.tolist() == [1, 1, 1]


def test_inference_tensors_and_functional_transforms() -> None:
    with torch.inference_mode():
        x = torch.ones(3, device="flagos")
        assert x.is_inference()
        assert x[1:].add_(1).tolist() == [2, 2]
    squares = torch.func.vmap(lambda row: (row * row).sum())(torch.arange(6.0, device="flagos").view(3, 2))
    assert squares.tolist() == [1.0, 13.0, 41.0]
    gradient = torch.func.grad(lambda t: (t**3).sum())(torch.tensor([1.0, 2.0], device="flagos"))
    assert gradient.tolist() == [3.0, 12.0]
