# SPDX-License-Identifier: Apache-2.0
"""What a job takes on device flagos and in process: the figures of PyTorch, the driver and the kernel."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("--report", required=True)
parser.add_argument("--worker", default="", help="device")
options = parser.parse_args()
MIB = 1 << 20


def resident(pid: int) -> int:
    """Bytes that the process alone takes, shared libraries left out."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) * 1024


def on_device(pid: int) -> int:
    query = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    rows = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()
    return sum(int(used) * MIB for other, used in (row.split(",") for row in rows) if int(other) == pid)


def job(device: str) -> dict[str, Any]:
    import torch
    import torch.nn.functional as F

    module = getattr(torch, device)
    torch.manual_seed(0)
    width = 2048
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(width, width), torch.nn.GELU())]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)).to(device)
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(4096, width, generator=torch.Generator().manual_seed(1)).to(device)
    y = torch.arange(4096).remainder(10).to(device)
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    figures = {"loss": loss.item()}
    module.synchronize()
    names = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
    figures |= {name: getattr(module, name)() for name in names}
    _, total = module.mem_get_info()
    executor = os.getpid() if device == "cuda" else module.session_info()["executor_pid"]
    return figures | {
        "total": total,
        "device": on_device(executor),
        "host": resident(executor),
        "client": resident(os.getpid()),
    }


if options.worker:
    print(json.dumps(job(options.worker)))
    raise SystemExit(0)


def run(device: str) -> dict[str, Any]:
    env = {k: v for k, v in os.environ.items() if device != "cuda" or not k.startswith("FLAGOS")}
    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0" if device == "cuda" else "1"
    command = [sys.executable, __file__, "--report", options.report, "--worker", device]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


cuda, flagos = run("cuda"), run("flagos")
Path(options.report, "memory.json").write_text(json.dumps({"cuda": cuda, "flagos": flagos}, indent=1))
for name, theirs in cuda.items():
    print(f"{name:22s} cuda {theirs:>20,} flagos {flagos[name]:>20,}")
failed = []
for name in ("loss", "total"):
    if cuda[name] != flagos[name]:
        failed.append(f"{name} differs")
# In process a backward pass has a thread of its own, and that a workspace of cuBLAS, which is 32 MiB.
for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
    if not 0 <= cuda[name] - flagos[name] <= 64 * MIB:
        failed.append(f"{name} differs by more than a workspace of cuBLAS")
if flagos["device"] - cuda["device"] > max(0.02 * cuda["device"], 64 * MIB):
    failed.append("the device has to hold more than 2 % and 64 MiB more")
if flagos["host"] - cuda["host"] > 300 * MIB:
    failed.append("the executor takes 300 MiB of host memory more than the process in which CUDA runs")
print("; ".join(failed) or "within bounds")
raise SystemExit(bool(failed))
