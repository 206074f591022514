# SPDX-License-Identifier: Apache-2.0
"""A step that trains or generates sends nothing to the host, waits for nothing, computes nothing there."""

import torch
from agreement import DEVICE
from agreement.traffic import NOTHING, traffic_of


def test_101_adamw_keeps_its_state_on_the_device() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    x = torch.rand(32, 8, device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    assert traffic_of(step) == NOTHING


def test_102_greedy_choice_and_accumulation_stay_on_the_device() -> None:
    logits = torch.rand(2, 151_000, device=DEVICE)
    total = torch.zeros(2, 151_000, device=DEVICE)
    done = torch.zeros(2, dtype=torch.bool, device=DEVICE)

    def step() -> None:
        total.add_(logits, alpha=0.5)
        token = torch.argmax(total, -1)
        positions = torch.arange(2, device=DEVICE)
        done.logical_or_(torch.isin(token, positions))
        total.masked_fill_(done[:, None], 0.0)
        done.any()

    assert traffic_of(step) == NOTHING
