#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The yardstick: the same PyTorch work on any device, one process, one device.

    workloads.py --device cpu --scale small --out a.json
    workloads.py --device flagos --scale small --out b.json

Each workload prints the median and the minimum seconds of --repeat timed rounds and a check value (a loss,
tokens, a sum) that must agree between devices. `--scale small` fits a machine without an accelerator.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

_start = time.perf_counter()
import torch  # noqa: E402 (its import is timed)
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

IMPORT_SECONDS = time.perf_counter() - _start

import decoder  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--device", required=True)
parser.add_argument("--scale", choices=["full", "small"], default="full")
parser.add_argument("--only", default="", help="comma separated names")
parser.add_argument("--repeat", type=int, default=7)
parser.add_argument("--out", default="")
parser.add_argument("--compile", default="", help="wrap the networks in torch.compile with this mode")
options = parser.parse_args()

FULL = options.scale == "full"
DEVICE = torch.device(options.device)
CALLS = 100  # of a small operator in one step

Step = Callable[[], object]
Check = Callable[[], float]


def synchronize() -> None:
    if DEVICE.type != "cpu":
        getattr(torch, DEVICE.type).synchronize()


def once(seconds: float) -> dict[str, float]:
    return {"median": seconds, "min": seconds, "check": 0.0}


_start = time.perf_counter()
torch.ones(8, device=DEVICE).add_(1).sum().item()
RESULTS: dict[str, dict[str, object]] = {
    "first_op": once(time.perf_counter() - _start),
    "import_torch": once(IMPORT_SECONDS),
}


def workload(name: str, make: Callable[[], tuple[Step, Check]], rounds: int, calls: int = 1) -> None:
    """Time `rounds` steps a repeat, after four to warm up. A step makes `calls` calls."""
    if options.only and name not in options.only.split(","):
        return
    try:
        torch.manual_seed(0)
        step, check = make()
        for _ in range(4):
            step()
        synchronize()
        times = []
        for _ in range(options.repeat):
            start = time.perf_counter()
            for _ in range(rounds):
                step()
            synchronize()
            times.append((time.perf_counter() - start) / rounds / calls)
        result = {"median": statistics.median(times), "min": min(times), "check": float(check())}
        RESULTS[name] = result
        print(
            f"{name:24s} median {result['median'] * 1e6:14.2f} us   min {result['min'] * 1e6:14.2f} us",
            end="",
        )
        print(f"   check {result['check']:.6f}", flush=True)
    except Exception as error:
        RESULTS[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(f"{name:24s} {RESULTS[name]['error']}", flush=True)


def host_randn(*size: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed)).to(dtype)


def compiled(net: nn.Module) -> nn.Module:
    return torch.compile(net, mode=options.compile) if options.compile else net  # type: ignore[return-value]


def trainer(
    net: nn.Module, optimizer: torch.optim.Optimizer, loss_of: Callable[[nn.Module], Tensor], item: bool
) -> tuple[Step, Check]:
    last: list[Tensor | float] = [0.0]

    def step() -> None:
        optimizer.zero_grad()
        loss = loss_of(net)
        loss.backward()
        optimizer.step()
        last[0] = loss.item() if item else loss.detach()

    return step, lambda: float(last[0])


def small_operator(call: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], tuple[Step, Check]]:
    def make() -> tuple[Step, Check]:
        a, b = host_randn(16, 16).to(DEVICE), host_randn(16, 16, seed=1).to(DEVICE)

        def step() -> None:
            with torch.no_grad():
                for _ in range(CALLS):
                    call(a, b)

        return step, lambda: call(a, b).sum().item()

    return make


def add_inplace() -> tuple[Step, Check]:
    total = torch.zeros(16, 16, device=DEVICE)

    def step() -> None:
        with torch.no_grad():
            for _ in range(CALLS):
                total.add_(1.0)

    return step, lambda: (total * 0).sum().item()


def item() -> tuple[Step, Check]:
    a = host_randn(16, 16).to(DEVICE)
    return lambda: a[0, 0].item(), lambda: a[0, 0].item()


def mlp_adamw() -> tuple[Step, Check]:
    blocks = [module for _ in range(8) for module in (nn.Linear(256, 256), nn.GELU())]
    net = compiled(nn.Sequential(*blocks, nn.Linear(256, 10)).to(DEVICE))
    x, y = host_randn(64, 256).to(DEVICE), torch.arange(64).remainder(10).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=True)
    return trainer(net, optimizer, lambda n: F.cross_entropy(n(x), y), False)


def convnet_sgd() -> tuple[Step, Check]:
    width = 64 if FULL else 16

    def block(inputs: int, outputs: int, stride: int) -> nn.Module:
        convolution = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())

    layers = [block(3, width, 1), *(block(width, width, 1) for _ in range(8)), block(width, 2 * width, 2)]
    layers += [block(2 * width, 2 * width, 1) for _ in range(8)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 10)]
    net = compiled(nn.Sequential(*layers).to(DEVICE).to(memory_format=torch.channels_last))
    x = host_randn(16, 3, 32, 32).to(DEVICE).contiguous(memory_format=torch.channels_last)
    y = torch.arange(16).remainder(10).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    return trainer(net, optimizer, lambda n: F.cross_entropy(n(x), y), True)


SHAPE = decoder.FULL if FULL else decoder.SMALL
CONTEXT, SEQUENCE = (512, 128) if FULL else (64, 32)
_network: list[nn.Module] = []


def network() -> nn.Module:
    """The decoder on the device, moved there once; the time that took is a result."""
    if not _network:
        net = decoder.make_decoder(SHAPE)
        start = time.perf_counter()
        net = net.to(DEVICE)
        synchronize()
        RESULTS["load_weights"] = once(time.perf_counter() - start)
        _network.append(compiled(net))
    return _network[0]


def positions(tokens: int) -> tuple[Tensor, Tensor]:
    size = (1, 1, tokens, SHAPE.head)
    return torch.ones(size, dtype=SHAPE.dtype).to(DEVICE), torch.zeros(size, dtype=SHAPE.dtype).to(DEVICE)


def decode_fixed_cache() -> tuple[Step, Check]:
    net, (cos, sin) = network(), positions(1)
    size = (1, SHAPE.key_heads, CONTEXT, SHAPE.head)
    past = [
        tuple(host_randn(*size, dtype=SHAPE.dtype, seed=i + more).to(DEVICE) for more in (0, 99))
        for i in range(SHAPE.layers)
    ]
    ids, token = torch.tensor([[7]]).to(DEVICE), [0]

    def step() -> None:
        with torch.no_grad():
            token[0] = net(ids, cos, sin, past)[0][:, -1].argmax(-1).item()

    return step, lambda: token[0]


def decode_growing_cache() -> tuple[Step, Check]:
    net, (cos, sin), tokens = network(), positions(1), []

    def step() -> None:
        tokens.clear()
        with torch.no_grad():
            ids, past = torch.tensor([[7]]).to(DEVICE), None
            for _ in range(32):
                out, past = net(ids, cos, sin, past)
                ids = out[:, -1].argmax(-1, keepdim=True)
                tokens.append(ids.item())

    return step, lambda: sum(tokens)


def lm_train(make: Callable[..., torch.optim.Optimizer], item_each_step: bool) -> tuple[Step, Check]:
    net, (cos, sin) = network(), positions(SEQUENCE)
    ids = torch.arange(SEQUENCE).mul(37).remainder(SHAPE.vocabulary).view(1, SEQUENCE).to(DEVICE)
    optimizer = make(net.parameters(), lr=1e-5, foreach=True)
    return trainer(
        net,
        optimizer,
        lambda n: F.cross_entropy(n(ids, cos, sin)[0][0, :-1].float(), ids[0, 1:]),
        item_each_step,
    )


def mm_large() -> tuple[Step, Check]:
    size = 8192 if FULL else 512
    a = host_randn(size, size, dtype=SHAPE.dtype).to(DEVICE)
    return lambda: a @ a, lambda: (a[:4] @ a)[0, 0].float().item()


def host_buffer(pinned: bool) -> Tensor:
    return torch.empty((64 << 20) if FULL else (1 << 20), pin_memory=pinned and DEVICE.type != "cpu")


def copy_to_device(pinned: bool) -> tuple[Step, Check]:
    host = host_buffer(pinned).fill_(1.5)
    on = host.to(DEVICE)
    return lambda: on.copy_(host, non_blocking=pinned), lambda: on[:8].sum().item()


def copy_to_host(pinned: bool) -> tuple[Step, Check]:
    on, back = host_buffer(pinned).fill_(1.5).to(DEVICE), host_buffer(pinned)

    def step() -> None:
        back.copy_(on, non_blocking=pinned)
        synchronize()

    return step, lambda: back[:8].sum().item()


workload("add_16x16", small_operator(torch.add), 100 if FULL else 20, CALLS)
workload("add_inplace_16x16", add_inplace, 100 if FULL else 20, CALLS)
workload("mm_16x16", small_operator(torch.mm), 100 if FULL else 20, CALLS)
workload("item", item, 1000 if FULL else 200)
workload("mlp_adamw", mlp_adamw, 30 if FULL else 10)
workload("convnet_sgd", convnet_sgd, 10 if FULL else 2)
workload("decode_fixed_cache", decode_fixed_cache, 10)
workload("decode_growing_cache", decode_growing_cache, 1, 32)
workload("lm_train_adamw", lambda: lm_train(torch.optim.AdamW, False), 5)
workload("lm_train_sgd_item", lambda: lm_train(torch.optim.SGD, True), 5)
workload("mm_large", mm_large, 20)
workload("h2d_pageable", lambda: copy_to_device(False), 3)
workload("d2h_pageable", lambda: copy_to_host(False), 3)
workload("h2d_pinned", lambda: copy_to_device(True), 3)
workload("d2h_pinned", lambda: copy_to_host(True), 3)

if options.out:
    document = {
        "device": options.device,
        "torch": torch.__version__,
        "scale": options.scale,
        "results": RESULTS,
    }
    Path(options.out).write_text(json.dumps(document, indent=1))
