# SPDX-License-Identifier: Apache-2.0
"""What a program asks about the devices is a constant in compiled code, and breaks no graph."""

import torch
from conftest import DEVICES


@torch.compile(backend="eager", fullgraph=True)
def _asks(x: torch.Tensor) -> torch.Tensor:
    if torch.flagos.is_available():
        x = x + torch.flagos.device_count()
    return x + 100 * torch.flagos.current_device()


def test_the_answers_are_right_and_follow_the_current_device() -> None:
    x = torch.zeros(1, device="flagos:1")
    assert _asks(x).tolist() == [DEVICES]
    with torch.flagos.device(2):
        assert _asks(x).tolist() == [DEVICES + 200]
    assert _asks(x).tolist() == [DEVICES]
    assert torch.flagos.current_device() == 0
