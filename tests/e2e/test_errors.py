# SPDX-License-Identifier: Apache-2.0
"""Mistakes raise what they raise on the CPU, and what is not supported says so by name.

# regressions.md 36, 53
"""

import re
import warnings
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

Mistake = Callable[[str], object]


def ones(device: str, *shape: int) -> torch.Tensor:
    return torch.ones(shape, device=device)


def convolve(device: str, **options: object) -> bool:
    functional.conv2d(ones(device, 1, 3, 8, 8), ones(device, 4, 3, 3, 3), **options)  # type: ignore[arg-type]
    return True


MISTAKES: dict[str, Mistake] = {
    "shapes that do not broadcast": lambda d: ones(d, 2, 3) + ones(d, 4),
    "inner sizes": lambda d: ones(d, 2, 3) @ ones(d, 4, 5),
    "batch sizes": lambda d: torch.bmm(ones(d, 2, 3, 4), ones(d, 3, 4, 5)),
    "types of a product": lambda d: ones(d, 2, 2) @ ones(d, 2, 2).double(),
    "a view of another size": lambda d: ones(d, 6).view(4),
    "a reshape of another size": lambda d: ones(d, 6).reshape(-1, 4),
    "a dimension": lambda d: ones(d, 2).sum(dim=3),
    "a dimension of a view": lambda d: ones(d, 2).transpose(0, 2),
    "an index": lambda d: ones(d, 3)[5],
    "an index of a list": lambda d: ones(d, 3)[torch.tensor([7], device=d)],
    "indices of booleans": lambda d: ones(d, 3)[torch.tensor([True, False], device=d)],
    "in place of another type": lambda d: torch.ones(2, dtype=torch.int64, device=d).add_(0.5),
    "in place of another shape": lambda d: ones(d, 2).add_(ones(d, 3, 2)),
    "out of another type": lambda d: torch.add(
        ones(d, 2), 1.5, out=torch.empty(2, dtype=torch.int64, device=d)
    ),
    "bitwise of floats": lambda d: ones(d, 2) & ones(d, 2),
    "minus of booleans": lambda d: ones(d, 2).bool() - ones(d, 2).bool(),
    "cat of shapes": lambda d: torch.cat([ones(d, 2, 2), ones(d, 3)]),
    "cat of nothing": lambda d: torch.cat([]),
    "stack of shapes": lambda d: torch.stack([ones(d, 2), ones(d, 3)]),
    "item of many": lambda d: ones(d, 2).item(),
    "truth of many": lambda d: bool(ones(d, 2)),
    "channels of a convolution": lambda d: functional.conv2d(ones(d, 1, 3, 4, 4), ones(d, 2, 4, 3, 3)),
    "a kernel too large": lambda d: functional.conv2d(ones(d, 1, 1, 2, 2), ones(d, 1, 1, 5, 5)),
    "a class that is not there": lambda d: functional.cross_entropy(
        ones(d, 1, 3), torch.tensor([9], device=d)
    ),
    "batch norm of one": lambda d: functional.batch_norm(ones(d, 1, 3), None, None, training=True),
    "an inverse that is not": lambda d: torch.linalg.inv(torch.zeros(2, 2, device=d)),
    "cholesky of no such": lambda d: torch.linalg.cholesky(-torch.eye(2, device=d)),
    "an empty maximum": lambda d: torch.empty(0, device=d).max(),
    "topk of too many": lambda d: ones(d, 3).topk(5),
    "multinomial without weight": lambda d: torch.zeros(3, device=d).multinomial(2),
    "gather by floats": lambda d: ones(d, 3).gather(0, ones(d, 3)),
    "copy of another shape": lambda d: ones(d, 2).copy_(ones(d, 3)),
    "backward of many": lambda d: ones(d, 2).requires_grad_().mul(2).backward(),
    "a leaf in place": lambda d: ones(d, 2).requires_grad_().add_(1),
    "a probability": lambda d: functional.dropout(ones(d, 2), 1.5),
    "randint of nothing": lambda d: torch.randint(0, (2,), device=d),
    "arange backwards": lambda d: torch.arange(3, 0, device=d),
    # Of known signatures, which do not wait otherwise.
    "a range upside down": lambda d: ones(d, 4).uniform_(0, 1).uniform_(1, 0),
    "a deviation below zero": lambda d: ones(d, 4).normal_(0, 1).normal_(0, -1),
    "a number that does not fit": lambda d: ones(d, 2).int().fill_(1).fill_(2**40),
    "a mask's number that does not fit": lambda d: (
        ones(d, 2).half().masked_fill(ones(d, 2) > 0, -1.0),
        ones(d, 2).half().masked_fill(ones(d, 2) > 0, -1e9),
    ),
    "a filling that does not fit": lambda d: (
        torch.full((2,), 1.0, dtype=torch.float16, device=d),
        torch.full((2,), 1e9, dtype=torch.float16, device=d),
    ),
    "a limit that does not fit": lambda d: (
        ones(d, 2).half().clamp(min=1.0),
        ones(d, 2).half().clamp(min=1e9),
    ),
    "a factor that does not fit": lambda d: (
        torch.add(ones(d, 2).half(), ones(d, 2).half(), alpha=1.0),
        torch.add(ones(d, 2).half(), ones(d, 2).half(), alpha=1e9),
    ),
    "a negative power of integers": lambda d: (ones(d, 2).int() ** 2, ones(d, 2).int() ** -1),
    "out over an operand's elements": lambda d: (
        torch.cat([ones(d, 2), ones(d, 2)], out=ones(d, 4)),
        torch.cat([(x := ones(d, 4))[:2], ones(d, 2)], out=x),
    ),
    "out over an operand": lambda d: (
        torch.cat([ones(d, 4)], out=ones(d, 4)),
        torch.cat([x := ones(d, 4)], out=x),
    ),
    "an operand as out that is too small": lambda d: (
        ones(d, 5, 5).logical_and_(ones(d, 5, 5)),
        ones(d, 5, 1).logical_and_(ones(d, 5, 5)),
    ),
    "in place over its own elements": lambda d: (
        ones(d, 5)[1:].add_(ones(d, 6)[1:-1]),
        (x := ones(d, 5))[1:].add_(x[:-1]),
    ),
    "a stride of nothing": lambda d: convolve(d, stride=1) and convolve(d, stride=0),
    "strides of another number": lambda d: convolve(d, stride=1) and convolve(d, stride=(1, 2, 1)),
    "a negative padding": lambda d: convolve(d, padding=1) and convolve(d, padding=-1),
    "a dilation of nothing": lambda d: convolve(d, dilation=1) and convolve(d, dilation=0),
    "a type that does not add up": lambda d: (
        ones(d, 2).cumsum(0, dtype=torch.float64),
        ones(d, 2).cumsum(0, dtype=torch.bool),
    ),
    "a rounding of complex numbers": lambda d: (
        ones(d, 2).cfloat() / ones(d, 2).cfloat(),
        torch.div(ones(d, 2).cfloat(), ones(d, 2).cfloat(), rounding_mode="floor"),
    ),
    "full of text": lambda d: torch.full((2,), "x", device=d),  # type: ignore[call-overload]
}


# What only the values tell, which the device may find after the call has returned.
OF_VALUES = {
    "an index of a list",
    "a class that is not there",
    "an inverse that is not",
    "cholesky of no such",
    "multinomial without weight",
}
RAISED_LATER = re.compile(
    r"\n\(raised by aten::\w+(\.\w+)?, record \d+ of the session, which ran asynchronously.*\)"
)


def raised_by(mistake: Mistake, device: str, wait: bool) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011, PT012  (which one, and when, is what is asked)
        mistake(device)
        if wait:
            torch.flagos.synchronize()
    return caught.value


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_raises_what_it_raises_on_the_cpu(name: str) -> None:
    expected = raised_by(MISTAKES[name], "cpu", wait=False)
    for _ in range(2):
        got = raised_by(MISTAKES[name], "flagos", wait=name in OF_VALUES)
        text = str(got)
        if name in OF_VALUES:
            text = RAISED_LATER.sub("", text)
        assert type(got) is type(expected), got
        assert re.sub(r"flagos:0|flagos", "cpu", text) == str(expected)
    torch.flagos.synchronize()
    assert (torch.ones(2, device="flagos") + 1).tolist() == [2, 2], "the session goes on"


def test_an_error_in_the_midst_of_asynchronous_calls_spoils_nothing_else() -> None:
    x = torch.zeros(4, device="flagos")
    for i in range(50):
        x += 1
        if i % 10 == 0:
            with pytest.raises(RuntimeError, match="must match the size"):
                x + torch.ones(3, device="flagos")
    assert x.tolist() == [50.0] * 4


def test_what_only_the_values_tell_is_raised_when_they_are_read() -> None:
    for _ in range(3):  # the third time every signature is known and the call does not wait
        weight = torch.ones(4, 2, device="flagos")
        with pytest.raises(IndexError):
            functional.embedding(torch.tensor([1, 9], device="flagos"), weight).tolist()
        assert functional.embedding(torch.tensor([1, 3], device="flagos"), weight).tolist() == [
            [1, 1],
            [1, 1],
        ]


def test_what_a_failed_call_should_have_written_is_not_read_as_if_it_had_not_failed() -> None:
    ones_ = torch.ones(1, device="flagos")
    for index in (1, 7):  # known the second time, when nobody waits for the answer
        x = torch.zeros(3, device="flagos")
        x.index_add_(0, torch.tensor([index], device="flagos"), ones_)
        if index == 1:
            assert x.tolist() == [0, 1, 0]
    with pytest.raises((IndexError, RuntimeError), match="index"):
        torch.flagos.synchronize()
    with pytest.raises((IndexError, RuntimeError), match="index"):
        x.tolist()
    big = torch.zeros(3_000_000, device="flagos")  # read in pieces
    for index in (1, 3_000_000):
        big.index_add_(0, torch.tensor([index], device="flagos"), ones_)
    for _ in range(2):
        with pytest.raises((IndexError, RuntimeError), match="index"):
            big.cpu()
    assert (ones_ + 1).tolist() == [2]


def test_more_elements_than_can_be_named_are_an_error_of_the_call() -> None:
    x = torch.ones(1, device="flagos")
    assert (x + 1).tolist() == [2]
    with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 6291456\.00 TiB"):
        x.expand(3 * 2**59) + 1
    with pytest.raises(NotImplementedError, match="number of elements cannot be sent"):
        x.expand(2**62 + 2) + 1
    torch.flagos.synchronize()
    assert (x + 1).tolist() == [2], "the session goes on"


def test_an_operator_without_kernel_is_named() -> None:
    library = torch.library.Library("flagos_e2e", "DEF")
    library.define("nowhere(Tensor x) -> Tensor")
    for _ in range(2):
        with pytest.raises(NotImplementedError, match="flagos_e2e::nowhere"):
            torch.ops.flagos_e2e.nowhere(torch.ones(2, device="flagos"))
    library.impl("nowhere", lambda x: x + 1, "CompositeImplicitAutograd")
    assert torch.ops.flagos_e2e.nowhere(torch.ones(2, device="flagos")).tolist() == [2, 2]


@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8, torch.bits8], ids=str)
def test_a_type_that_is_not_supported_is_named(dtype: torch.dtype) -> None:
    with pytest.raises((NotImplementedError, RuntimeError)) as caught:
        torch.empty(2, dtype=dtype, device="flagos")
    assert type(caught.value) is NotImplementedError
    # Quantized types are spoken of by the key of their kernels.
    name = f"{str(dtype).removeprefix('torch.')}|QuantizedPrivateUse1"
    assert re.search(name, str(caught.value), re.IGNORECASE)


def test_a_layout_that_is_not_supported_says_so() -> None:
    with pytest.raises((NotImplementedError, RuntimeError), match=r"(?i)mkldnn"):
        torch.eye(3, device="flagos").to_mkldnn()
    with pytest.raises((NotImplementedError, RuntimeError), match=r"(?i)mkldnn"):
        torch.eye(3).to_mkldnn().to("flagos")
    assert torch.eye(3, device="flagos").sum().item() == 3.0


def test_a_nested_tensor_says_so() -> None:
    x = torch.ones(2, 3, 8, device="flagos")
    with pytest.raises(NotImplementedError, match="nested"):
        torch._nested_tensor_from_mask(x, torch.ones(2, 3, dtype=torch.bool, device="flagos"))


def test_warnings_of_the_executor_are_raised_here() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.add(torch.ones(2, device="flagos"), 1, out=torch.ones(3, device="flagos"))
    assert any("was resized" in str(w.message) for w in caught)
    x = torch.ones(1, device="flagos")
    for _ in range(3):  # then the call waits no more
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.var(x)
            torch.flagos.synchronize()
        assert [w.category for w in caught] == [UserWarning]
        assert "degrees of freedom is <= 0" in str(caught[0].message)
    assert caught[0].filename == __file__
    x = torch.ones(2, dtype=torch.complex64, device="flagos")
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        x.to(torch.float32)


def test_complex_operators_that_the_cpu_lacks_are_named_alike() -> None:
    for device in ("cpu", "flagos"):
        with pytest.raises((NotImplementedError, RuntimeError), match=r"Half|half"):
            torch.linalg.inv(torch.eye(2, dtype=torch.float16, device=device))
