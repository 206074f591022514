# SPDX-License-Identifier: Apache-2.0
"""What a spawned process runs; it must be importable there."""

import torch


def work(number: int) -> list[float]:
    result: list[float] = (torch.ones(1, device="flagos") * 2 * number).tolist()
    return result
