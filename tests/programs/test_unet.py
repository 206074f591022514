# SPDX-License-Identifier: Apache-2.0
"""A block of a diffusion model: convolutions, group norm, attention over pixels, down and up, skips."""

import pytest
import torch
from agreement import agrees
from torch import Tensor, nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, outputs)
        self.convolution1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.convolution2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        hidden = self.convolution1(F.silu(self.norm1(x)))
        hidden = hidden + self.time(F.silu(time))[:, :, None, None]
        hidden = self.convolution2(F.dropout(F.silu(self.norm2(hidden)), 0.1, self.training))
        result: Tensor = self.skip(x) + hidden
        return result


class PixelAttention(nn.Module):
    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(4, channels)
        self.qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        pixels = self.norm(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(pixels).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x + self.out(mixed).transpose(1, 2).reshape(batch, channels, height, width)


class UNet(nn.Module):
    def __init__(self, width: int = 16, time: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.before = Residual(width, width, time)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle = Residual(2 * width, 2 * width, time)
        self.attention = PixelAttention(2 * width, 4)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.after = Residual(2 * width, width, time)
        self.head = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        skip = self.before(self.stem(x), time)
        low = self.attention(self.middle(self.down(skip), time))
        up = F.interpolate(low, scale_factor=2.0, mode="nearest")[:, : skip.shape[1]] + self.up(low)
        pooled = F.interpolate(F.avg_pool2d(skip, 2), skip.shape[2:], mode="bilinear", antialias=True)
        result: Tensor = self.head(self.after(torch.cat([skip + pooled, up], 1), time))
        return result


FORMATS = [torch.contiguous_format, torch.channels_last]
# PyTorch hands group norm's backward a contiguous gradient on all devices but the CPU, so that its sums have
# another order where the image is channels-last.
TOLERANCE = {torch.contiguous_format: 0.0, torch.channels_last: 1e-5}


def network(device: str, memory_format: torch.memory_format) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(5)
    model, image, time = UNet(), torch.randn(2, 3, 12, 12), torch.randn(2, 8)
    torch.manual_seed(6)  # the same dropout: the weights were drawn on the CPU
    image = image.to(device).contiguous(memory_format=memory_format)
    return model.to(device).to(memory_format=memory_format), image.requires_grad_(), time.to(device)


@pytest.mark.parametrize("memory_format", FORMATS)
def test_every_module_returns_the_cpus_values_and_strides(memory_format: torch.memory_format) -> None:
    def compute(device: str) -> list[Tensor]:
        model, image, time = network(device, memory_format)
        outputs: list[Tensor] = []
        for module in model.modules():
            module.register_forward_hook(lambda _module, _args, output: outputs.append(output))
        model(image, time)
        return outputs

    agrees(compute)


@pytest.mark.parametrize("memory_format", FORMATS)
def test_gradients(memory_format: torch.memory_format) -> None:
    def compute(device: str) -> list[Tensor]:
        model, image, time = network(device, memory_format)
        noise = model(image, time)
        # A gradient that is not a constant, so that each element counts.
        loss = (noise * torch.linspace(-1, 1, noise.numel(), device=device).view(noise.shape)).sum()
        return [loss, *torch.autograd.grad(loss, [image, *model.parameters()])]

    agrees(compute, tolerance=TOLERANCE[memory_format])


@pytest.mark.parametrize("memory_format", FORMATS)
def test_trains_like_the_cpu(memory_format: torch.memory_format) -> None:
    def train(device: str) -> list[Tensor]:
        model, image, time = network(device, memory_format)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, foreach=True)
        average = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
        )
        losses = []
        for _ in range(5):
            loss = F.mse_loss(model(image, time), image.detach().flip(3))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update_parameters(model)
            losses.append(loss.detach())
        return [*losses, *model.parameters(), *average.parameters()]

    agrees(train, times=1, tolerance=TOLERANCE[memory_format])
