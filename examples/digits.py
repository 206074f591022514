# SPDX-License-Identifier: Apache-2.0
"""Trains a classifier of handwritten digits on device "flagos".

    digits.py [--device flagos] [--epochs 12] [--seed 0] [--output examples/output/digits.png]

Data are the 1,797 scanned digits that come with scikit-learn; a quarter of them is held out. Exits 1 unless
the network reads at least 96 % of those. With --device cpu the same program trains in process.
"""

import argparse
import sys
import time
from pathlib import Path

import console
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional

WANTED_ACCURACY = 0.96
BATCH = 64


def load(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images and labels to train on, images and labels held out; on the CPU."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(digits.target, dtype=torch.int64)
    train, held_out = train_test_split(
        range(len(labels)), test_size=0.25, random_state=seed, stratify=digits.target
    )
    return images[train], labels[train], images[held_out], labels[held_out]


def make_network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def accuracy_of(network: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    network.eval()
    with torch.inference_mode():
        right = (network(images).argmax(dim=1) == labels).float().mean().item()
    network.train()
    return right


def plot(path: Path, losses: list[float], accuracies: list[float], device: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, left = pyplot.subplots(figsize=(7, 4), layout="constrained")
    right = left.twinx()
    epochs = range(1, len(losses) + 1)
    left.plot(epochs, losses, color="tab:blue", marker="o", label="training loss")
    percent = [100 * accuracy for accuracy in accuracies]
    right.plot(epochs, percent, color="tab:orange", marker="s", label="held-out accuracy")
    right.axhline(100 * WANTED_ACCURACY, color="tab:gray", linestyle=":", linewidth=1)
    left.set(xlabel="epoch", ylabel="training loss", title=f"Handwritten digits on device {device}")
    right.set(ylabel="held-out accuracy, %", ylim=(min(80.0, *percent), 100.5))
    figure.legend(loc="outside lower center", ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def train(device: torch.device, epochs: int, seed: int) -> tuple[list[float], list[float]]:
    """Mean loss and held-out accuracy of each epoch."""
    torch.manual_seed(seed)
    images, labels, held_out_images, held_out_labels = (part.to(device) for part in load(seed))
    network = make_network().to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3)
    batches = (len(labels) + BATCH - 1) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=epochs * batches)

    losses: list[float] = []
    accuracies: list[float] = []
    with console.Progress("training", epochs * batches, every=batches) as progress:
        for epoch in range(1, epochs + 1):
            total = torch.zeros((), device=device)
            for step, batch in enumerate(torch.randperm(len(labels), device=device).split(BATCH), 1):
                loss = functional.cross_entropy(network(images[batch]), labels[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                total += loss.detach() * len(batch)
                if step < batches:
                    progress.step()
            losses.append(total.item() / len(labels))
            accuracies.append(accuracy_of(network, held_out_images, held_out_labels))
            percent = 100 * accuracies[-1]
            progress.step(f"epoch {epoch}/{epochs}, loss {losses[-1]:.4f}, held-out {percent:.1f} %")
    return losses, accuracies


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="flagos")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "output" / "digits.png")
    options = parser.parse_args()
    device = torch.device(options.device)

    console.title(f"Handwritten digits: training on device {device}")
    if device.type == "flagos":
        console.note(f"device: {torch.flagos.get_device_name(device)}")
    began = time.monotonic()
    losses, accuracies = train(device, options.epochs, options.seed)
    seconds = time.monotonic() - began
    plot(options.output, losses, accuracies, str(device))

    good = accuracies[-1] >= WANTED_ACCURACY
    console.note(
        f"{100 * accuracies[-1]:.2f} % of the held-out digits are read correctly after {seconds:.1f} s "
        f"(wanted: {100 * WANTED_ACCURACY:.0f} %): {'good' if good else 'NOT good enough'}"
    )
    console.note(f"the curve: {options.output}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
