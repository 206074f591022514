# SPDX-License-Identifier: Apache-2.0
"""torch.flagos.FloatTensor and its kin are what torch.cuda's are."""

import pytest
import torch
from flagos import tensor_types


@pytest.mark.parametrize("name", tensor_types.TYPES)
def test_instances_are_those_of_the_device_and_the_dtype(name: str) -> None:
    kind = getattr(torch.flagos, name)
    tensor = torch.ones(2, device="flagos:1").to(kind.dtype)
    assert isinstance(tensor, kind)
    assert not isinstance(tensor.cpu(), kind)
    assert not isinstance(tensor.to(torch.complex64), kind)
    assert tensor.type() == kind.__name__ == f"torch.flagos.{name}"
    assert torch.ones(2).type(kind).type() == kind.__name__
    assert kind([1, 0]).tolist() == [1, 0]
    assert kind(2, 3).shape == (2, 3)
    assert kind().shape == (0,)
    assert not isinstance(None, kind)


def test_a_parameter_is_an_instance() -> None:
    assert isinstance(torch.nn.Linear(1, 1).flagos().weight, torch.flagos.FloatTensor)


def test_the_default_tensor_type() -> None:
    try:
        torch.set_default_tensor_type("torch.flagos.DoubleTensor")
        assert isinstance(torch.ones(2), torch.flagos.DoubleTensor)
        assert torch.tensor([1.5]).type() == "torch.flagos.DoubleTensor"
        torch.set_default_tensor_type(torch.flagos.FloatTensor)
        assert isinstance(torch.zeros(2), torch.flagos.FloatTensor)
        with pytest.raises(TypeError, match="floating-point"):
            torch.set_default_tensor_type(torch.flagos.LongTensor)
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(1).type() == "torch.FloatTensor"
