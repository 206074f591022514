# SPDX-License-Identifier: Apache-2.0
"""First light on a GPU: what a program does, step by step, against the CPU or in-process CUDA."""

import os
import subprocess
import sys
import tempfile
import time
import traceback

import torch
import torch.nn.functional as F

steps = []
NATIVE = "--native" in sys.argv  # in-process CUDA for comparison: this process has no device flagos


def native(name):
    """What the function `name` gives on in-process CUDA, in a process of its own."""
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        env = {k: v for k, v in os.environ.items() if not k.startswith("FLAGOS")}
        env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        subprocess.run([sys.executable, __file__, "--native", name, file.name], env=env, check=True)
        return torch.load(file.name)


def step(function):
    steps.append(function)
    return function


@step
def session():
    x = torch.ones(3, device="flagos")
    assert (x + 1).sum().item() == 6
    print(torch.flagos.session_info())
    print(torch.flagos.get_device_properties(0))


@step
def copies():
    for bytes_ in (8, 1000, 70_000, 5_000_000, 50_000_000):
        x = torch.randint(0, 255, (bytes_,), dtype=torch.uint8)
        assert torch.equal(x.to("flagos").cpu(), x), bytes_
    pinned = torch.empty(1 << 20, pin_memory=True).fill_(2.5)
    y = pinned.to("flagos", non_blocking=True)
    torch.flagos.synchronize()
    assert y.sum().item() == 2.5 * (1 << 20)


def train(device):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    x = torch.randn(16, 32, generator=torch.Generator().manual_seed(1)).to(device)
    y = torch.arange(16).remainder(10).to(device)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


@step
def training():
    ours = train("flagos")
    torch.testing.assert_close(ours, train("cpu"), rtol=1e-4, atol=1e-4)
    assert torch.equal(ours, native("train")), (ours, native("train"))


def convolve(device):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 2, 1), torch.nn.BatchNorm2d(16), torch.nn.ReLU()).to(
        device
    )
    x = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(2)).to(device)
    net(x).square().mean().backward()
    return net[0].weight.grad.cpu()


@step
def convolution_and_norm():
    ours = convolve("flagos")
    torch.testing.assert_close(ours, convolve("cpu"), rtol=1e-2, atol=1e-3)
    theirs, again = native("convolve"), native("convolve")
    print(
        "in-process CUDA repeats itself:",
        torch.equal(theirs, again),
        "we:",
        torch.equal(ours, convolve("flagos")),
    )
    assert torch.equal(ours, theirs), (ours - theirs).abs().max()


def attend(device, dtype=torch.bfloat16):
    torch.manual_seed(0)
    args = [torch.randn(2, 4, 64, 32).bfloat16().to(dtype).to(device).requires_grad_() for _ in range(3)]
    out = F.scaled_dot_product_attention(*args, is_causal=True)
    out.float().sum().backward()
    return torch.stack([out.detach().cpu(), *(a.grad.cpu() for a in args)])


@step
def attention():
    ours = attend("flagos")
    torch.testing.assert_close(ours.float(), attend("cpu", torch.float32), rtol=5e-2, atol=5e-2)
    assert torch.equal(ours, native("attend"))
    for name in ("aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_cudnn_attention"):
        for row in torch.flagos.explain(file=None):
            if row.name.startswith(name):
                print(row)


def draw(device):
    torch.manual_seed(7)
    drawn = [torch.rand(1000, device=device), torch.randn(1000, device=device)]
    drawn.append(F.dropout(torch.ones(1000, device=device), 0.3))
    return torch.stack([x.cpu() for x in drawn])


@step
def random_numbers():
    assert torch.equal(draw("flagos"), native("draw"))


@step
def streams():
    side = torch.flagos.Stream()
    x = torch.ones(2000, 2000, device="flagos")
    side.wait_stream(torch.flagos.current_stream())
    start, end = torch.flagos.Event(enable_timing=True), torch.flagos.Event(enable_timing=True)
    with torch.flagos.stream(side):
        start.record()
        for _ in range(20):
            x = (x @ x).clamp(max=1.0)
        end.record()
    torch.flagos.current_stream().wait_stream(side)
    assert x.sum().item() == 4_000_000
    assert start.elapsed_time(end) > 0


@step
def memory():
    torch.flagos.empty_cache()
    before = torch.flagos.memory_allocated()
    x = torch.empty(1 << 28, device="flagos", dtype=torch.uint8)
    torch.flagos.synchronize()
    assert torch.flagos.memory_allocated() - before == 1 << 28
    del x
    try:
        torch.empty(1 << 40, device="flagos", dtype=torch.uint8)
    except torch.OutOfMemoryError as error:
        print(str(error)[:200])
    else:
        raise AssertionError("a terabyte was allocated")
    assert torch.ones(2, device="flagos").sum().item() == 2


@step
def items():
    # Also what stands in the place of an element that has not arrived yet.
    absent = torch.tensor([0xA5C396E5 - (1 << 32), 0x96E5 - (1 << 16), 0xE5 - (1 << 8)])
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8):
        for value in (0, 1, -1, 77, *absent.tolist()):
            kept = torch.tensor(value).to(dtype)
            assert kept.to("flagos").item() == kept.item(), (dtype, value)
    words = torch.tensor([[0xA5C396E5 - (1 << 32)] * 4], dtype=torch.int32)
    for dtype in (torch.float32, torch.float64, torch.int64, torch.float16, torch.bfloat16, torch.complex64):
        element = words.view(dtype)[0, 0]
        assert element.to("flagos").item() == element.item(), dtype
    assert torch.tensor(True).to("flagos").item() is True
    assert torch.tensor(3 + 4j, dtype=torch.complex128).to("flagos").item() == 3 + 4j
    # An element whose kernels take longer than the thread watches.
    x = torch.eye(4096, device="flagos")
    for _ in range(60):
        x = x @ x
    assert x.sum().item() == 4096


@step
def errors():
    x = torch.ones(3, device="flagos")
    try:
        x @ torch.ones(4, device="flagos")
    except RuntimeError as error:
        print(str(error)[:100])
    else:
        raise AssertionError("no error")
    assert x.sum().item() == 3


if NATIVE:
    torch.save(globals()[sys.argv[2]]("cuda"), sys.argv[3])
    raise SystemExit(0)
failed = 0
for run_step in steps:
    began = time.perf_counter()
    try:
        run_step()
        print(f"ok     {run_step.__name__:24s} {time.perf_counter() - began:.3f} s", flush=True)
    except Exception:
        failed += 1
        print(f"FAILED {run_step.__name__:24s}\n{traceback.format_exc()[-1500:]}", flush=True)
print(f"{len(steps) - failed} of {len(steps)} steps passed")
raise SystemExit(failed)
