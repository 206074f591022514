# SPDX-License-Identifier: Apache-2.0
"""A training step of a real network waits only for what the program reads, and sends no signature again."""

from collections.abc import Callable
from typing import Any

import pytest
import test_qwen3
import test_t5
import test_unet
import torch
from agreement import DEVICE
from agreement.traffic import NOTHING, STEPS, traffic_of
from torch import nn
from torch.nn import functional as F
from transformers import StaticCache

Step = Callable[[], torch.Tensor]


def train_step(model: nn.Module, loss_of: Callable[[], torch.Tensor], **options: Any) -> Step:
    """The loss it returns is not read yet. The learning rate changes with each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **options)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=100)

    def step() -> torch.Tensor:
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss.detach()

    return step


def qwen3(**options: Any) -> Step:
    model, ids = test_qwen3.network(DEVICE).train(), test_qwen3.prompts(DEVICE)["input_ids"]
    return train_step(model, lambda: model(input_ids=ids, labels=ids).loss, **options)


def t5() -> Step:
    model, ids = test_t5.network(DEVICE, dropout_rate=0.1).train(), test_t5.text(DEVICE)["input_ids"]
    return train_step(model, lambda: model(input_ids=ids, labels=ids).loss)


def unet() -> Step:
    model, image, time = test_unet.network(DEVICE, torch.channels_last)
    return train_step(model, lambda: F.mse_loss(model(image, time), image.detach()))


def convolutional_autocast() -> Step:
    layers = [
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.LazyLinear(4),
    ]
    model = nn.Sequential(*layers).to(DEVICE)
    images, labels = torch.rand(8, 3, 8, 8).to(DEVICE), torch.arange(8).remainder(4).to(DEVICE)
    model(images)

    def loss_of() -> torch.Tensor:
        with torch.autocast("flagos", torch.bfloat16):
            return F.cross_entropy(model(images), labels)

    return train_step(model, loss_of)


# No padding masks: transformers looks at what they hold, which waits.
STEPS_OF: dict[str, Callable[[], Step]] = {
    "qwen3": qwen3,
    "qwen3, fused": lambda: qwen3(fused=True),
    "qwen3, tensor by tensor": lambda: qwen3(foreach=False),
    "t5": t5,
    "unet": unet,
    "convolutional, autocast": convolutional_autocast,
}


@pytest.mark.parametrize("name", STEPS_OF)
def test_a_step_causes_no_traffic(name: str) -> None:
    assert traffic_of(STEPS_OF[name]()) == NOTHING


def test_reading_the_loss_is_the_one_wait() -> None:
    step = qwen3()
    assert traffic_of(lambda: step().item()) == NOTHING | {"waits": STEPS}


def test_a_scaler_looks_once_a_step_for_an_overflow() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    scaler = torch.amp.GradScaler("flagos", init_scale=16.0)
    x = torch.rand(32, 8).to(DEVICE)

    def step() -> None:
        with torch.autocast("flagos", torch.float16):
            loss = model(x).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    assert traffic_of(step) == NOTHING | {"waits": STEPS}


def test_batches_from_the_host_cause_no_wait() -> None:
    model = nn.Linear(8, 4).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    batches = iter([torch.rand(32, 8).pin_memory() for _ in range(20)])

    def step() -> None:
        x = next(batches).to(DEVICE, non_blocking=True)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    assert traffic_of(step) == NOTHING


def test_decoding_into_a_static_cache_causes_no_traffic() -> None:
    """Token by token; each stays on the device."""
    model = test_qwen3.network(DEVICE)
    cache = StaticCache(config=model.config, max_cache_len=32)
    token = torch.tensor([[7], [9]], device=DEVICE)
    position = torch.zeros(1, dtype=torch.int64, device=DEVICE)

    @torch.inference_mode()
    def step() -> None:
        logits = model(token, cache=cache, position_ids=position[None]).logits
        token.copy_(logits[:, -1:].argmax(-1))
        position.add_(1)

    assert traffic_of(step) == NOTHING
