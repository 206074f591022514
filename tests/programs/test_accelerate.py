# SPDX-License-Identifier: Apache-2.0
"""Accelerate, and transformers' Trainer, which is built on it: ACCELERATE_TORCH_DEVICE names the device."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import test_qwen3
import torch
import transformers
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from agreement import DEVICE, agrees
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes Accelerate compute on a device, as its environment variable does before a program starts."""

    def choose(device: str) -> None:
        AcceleratorState._reset_state(reset_partial_state=True)
        monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", device)

    yield choose
    AcceleratorState._reset_state(reset_partial_state=True)


def train(folder: Path, **options: Any) -> list[torch.Tensor]:
    """Losses and parameters of a loop as Accelerate's documentation has it; its state is saved and loaded."""
    accelerator = Accelerator(**options)
    torch.manual_seed(1)
    model: nn.Module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    data = TensorDataset(torch.randn(48, 8), torch.arange(48) % 3)
    loader: Any = DataLoader(data, batch_size=8)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses = []
    for images, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather(loss.detach()))
    accelerator.save_state(str(folder))
    trained = [parameter.detach().clone() for parameter in model.parameters()]
    with torch.no_grad():
        torch._foreach_zero_(list(model.parameters()))
    accelerator.load_state(str(folder))
    assert all(one.equal(other) for one, other in zip(trained, model.parameters(), strict=True))
    return losses + trained


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulated": {"gradient_accumulation_steps": 2},
    "bfloat16": {"mixed_precision": "bf16"},
}


@pytest.mark.parametrize("way", OPTIONS)
def test_a_loop_trains_like_the_cpu(way: str, use: Any, tmp_path: Path) -> None:
    def compute(device: str) -> list[torch.Tensor]:
        use(device)
        return train(tmp_path / device, **OPTIONS[way])

    agrees(compute, times=1)


def test_mixed_precision_in_float16_is_refused(use: Any) -> None:
    """By Accelerate, which has a list of devices for it; torch.amp.GradScaler("flagos") works."""
    use(DEVICE)
    with pytest.raises(ValueError, match="fp16 mixed precision requires a device in"):
        Accelerator(mixed_precision="fp16")


def test_the_trainer_of_transformers_trains_like_the_cpu(use: Any, tmp_path: Path) -> None:
    def compute(device: str) -> list[Any]:
        use(device)
        ids = test_qwen3.prompts("cpu")["input_ids"]
        data: Any = [{"input_ids": ids[i % 2], "labels": ids[i % 2]} for i in range(12)]
        arguments = transformers.TrainingArguments(
            str(tmp_path / device),
            per_device_train_batch_size=4,
            num_train_epochs=2,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        assert arguments.device == torch.device(device)
        trainer = transformers.Trainer(test_qwen3.network("cpu").train(), arguments, train_dataset=data)
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        assert len(losses) == 6
        return [losses, trainer.evaluate(data)["eval_loss"], *trainer.model.parameters()]

    agrees(compute, times=1)


@pytest.mark.parametrize(("variables", "device"), [({}, "cpu"), ({"FLAGOS_ALIAS_CUDA": "1"}, "flagos")])
def test_what_accelerate_finds_by_itself(variables: dict[str, str], device: str) -> None:
    """It looks for the devices it knows: for "cuda", but not for flagos."""
    code = "from accelerate import Accelerator; print(Accelerator().device)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == device
