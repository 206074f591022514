# SPDX-License-Identifier: Apache-2.0
"""DLPack hands on addresses, and there are none: a tensor of flagos refuses, the CPU's go on."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

EXPORTS: dict[str, Callable[[torch.Tensor], object]] = {
    "from_dlpack": torch.from_dlpack,
    "to_dlpack": torch.to_dlpack,
    "utils.to_dlpack": lambda tensor: torch.utils.dlpack.to_dlpack(tensor),
    "method": lambda tensor: tensor.__dlpack__(),
    "device": lambda tensor: tensor.__dlpack_device__(),
    "numpy": lambda tensor: np.from_dlpack(tensor),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_a_tensor_of_the_device_is_refused_with_the_way_out(name: str) -> None:
    with pytest.raises(BufferError, match=r"flagos:1.*DLPack.*\.cpu\(\)"):
        EXPORTS[name](torch.ones(2, device="flagos:1"))


def test_tensors_of_the_cpu_are_handed_on() -> None:
    x = torch.arange(3.0)
    assert np.from_dlpack(x).tolist() == [0, 1, 2]
    shared = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    shared[0] = 7
    assert x.tolist() == [7, 1, 2]
    assert torch.from_dlpack(np.ones(2)).flagos().tolist() == [1, 1]
