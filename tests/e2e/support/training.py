# SPDX-License-Identifier: Apache-2.0
"""A small real job whose every loss is known from training it on the CPU."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


def train(
    device: str, steps: int, seed: int = 0, report: Callable[[int, torch.Tensor], None] | None = None
) -> list[float]:
    """Losses of a convolutional classifier with batch norm and dropout, trained with AdamW on made-up images.

    Everything random is drawn on the CPU, except dropout's masks. `report` is given each step's loss on the
    device.
    """
    torch.manual_seed(seed)
    images = torch.randn(64, 1, 8, 8)
    labels = torch.randint(0, 4, (64,))
    network = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(8 * 4 * 4, 4),
    ).to(device)
    images, labels = images.to(device), labels.to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    # Masks of the CPU's generator and of the device's begin at the same place.
    torch.manual_seed(seed + 1)
    losses = []
    for step in range(steps):
        loss = functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if report:
            report(step, losses[-1])
    return torch.stack(losses).tolist()
