# SPDX-License-Identifier: Apache-2.0
"""out= takes what PyTorch takes, resizes as it does, keeps strides, and returns the caller's tensors."""

from typing import Any

import torch
from opinfo.database import samples
from opinfo.outcome import assert_same
from opinfo.pairs import Call, outcomes, pair, strictness
from torch.utils._pytree import tree_leaves

DTYPES = [torch.float32]
FORMS = ("same", "strided", "empty", "larger", "double")


def applies(entry: Any, dtype: torch.dtype) -> bool:
    return entry.supports_out and dtype in entry.supported_dtypes("cpu")


def _out(like: torch.Tensor, form: str) -> torch.Tensor:
    """A tensor to write into, on the CPU, with recognisable content."""
    shape, dtype = like.shape, like.dtype
    if form == "strided":
        wide = torch.empty([2 * size for size in shape], dtype=dtype)
        out = wide[tuple(slice(None, None, 2) for _ in shape)]
    elif form == "empty":
        out = torch.empty(0, dtype=dtype)
    elif form == "larger":
        out = torch.empty((*shape, 2), dtype=dtype)
    else:
        out = torch.empty(shape, dtype=torch.float64 if form == "double" else dtype)
    return out.fill_(1)


def _call(entry: Any, call: Call) -> Any:
    (operand, outs), args, kwargs = call
    outs = tuple(outs)
    before = [out.data_ptr() for out in outs]
    result = entry(operand, *args, out=outs if len(outs) > 1 else outs[0], **kwargs)
    returned = result if isinstance(result, tuple | list) else (result,)
    same_memory = [out.data_ptr() == address for out, address in zip(outs, before, strict=True)]
    return outs, [one is other for one, other in zip(returned, outs, strict=True)], same_memory


def test_out(entry: Any, dtype: torch.dtype) -> None:
    for sample in samples(entry, dtype):
        likes = tree_leaves(entry(sample.input, *sample.args, **sample.kwargs))
        if not all(isinstance(like, torch.Tensor) and like.layout == torch.strided for like in likes):
            continue
        for form in FORMS:
            sample_with_outs = _WithOuts(sample, [_out(like, form) for like in likes])
            reference, got = outcomes(lambda call: _call(entry, call), pair(sample_with_outs))
            try:
                assert_same(reference, got, **strictness(entry))
            except Exception as error:
                error.add_note(f"out= of the form {form}")
                raise


class _WithOuts:
    """A sample whose input comes with the tensors to write into."""

    def __init__(self, sample: Any, outs: list[torch.Tensor]) -> None:
        self.input = (sample.input, outs)
        self.args = sample.args
        self.kwargs = sample.kwargs
