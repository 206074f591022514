# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own test data on device flagos against in-process CUDA: results and gradients to the bit.

Three runs of the same samples, side by side: in-process CUDA twice, device flagos once, with deterministic
algorithms where there are any. Where CUDA does not repeat itself all the same nothing can be asked of us;
everywhere else values, shapes, strides and data types must agree, and what CUDA refuses must be refused.

STEP takes every so many operators (3 unless set), SAMPLES so many samples of each (3), DTYPES their types,
SECONDS_EACH how long each run may take (300): what it has not come to by then is not compared.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("--report", required=True)
parser.add_argument("--worker", default="", help="device")
parser.add_argument("--start", type=int, default=0)
parser.add_argument("--until", type=float, default=0, help="when the worker ends, as time.time()")
options = parser.parse_args()

STEP = int(os.environ.get("STEP", "3"))
SAMPLES = int(os.environ.get("SAMPLES", "3"))
DTYPES = os.environ.get("DTYPES", "float32,int64").split(",")
# What is not compared: operators that return memory as they found it; the jiterator, which compiles code for
# CUDA in the process that calls it; and what PyTorch's Python code does in another way, for deterministic
# algorithms, where Tensor.is_cuda says so.
NOT_COMPARED = ("empty", "new_empty", "jiterator", "nn.functional.pad", "nn.functional.max_pool3d")


def worker(device: str, start: int) -> None:
    """Prints a line of JSON for each case: {"case": "add float32 0", "result": [...]}."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.utils._pytree import tree_leaves, tree_map

    operators: list[Any] = op_db[::STEP]
    torch.use_deterministic_algorithms(True)

    def moved(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to(device).requires_grad_(value.requires_grad)
        if isinstance(value, torch.device) or value == "cpu":
            return torch.device(device)
        return value

    def digest(value: Any) -> str:
        if not isinstance(value, torch.Tensor):
            return repr(value)
        if value.layout != torch.strided:
            value = value.to_dense()
        head = f"{value.dtype} {list(value.shape)} {list(value.stride())}"
        data = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
        bits = data.reshape(-1).view(torch.uint8).numpy().tobytes() if data.numel() else b""
        return f"{head} {hashlib.sha256(bits).hexdigest()[:16]}"

    def run(op: Any, sample: Any) -> list[str]:
        value, args, kwargs = tree_map(moved, (sample.input, sample.args, sample.kwargs))
        torch.manual_seed(1)
        results = [r for r in tree_leaves(op(value, *args, **kwargs)) if r is not None]
        digests = [digest(r) for r in results]
        wanted = [
            t for t in tree_leaves((value, args, kwargs)) if isinstance(t, torch.Tensor) and t.requires_grad
        ]
        roots = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
        if wanted and roots:
            torch.manual_seed(2)
            seeds = [torch.randn(r.shape, dtype=r.dtype).to(device) for r in roots]
            digests += [digest(g) for g in torch.autograd.grad(roots, wanted, seeds, allow_unused=True)]
        return digests

    for number, op in list(enumerate(operators))[start:]:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if time.time() > options.until:
            return
        print(json.dumps({"begin": number}), flush=True)
        for dtype_name in DTYPES:
            dtype = getattr(torch, dtype_name)
            if op.name.startswith(NOT_COMPARED) or dtype not in op.dtypesIfCUDA:
                continue
            torch.manual_seed(0)
            gradients = op.supports_autograd and dtype == torch.float32
            try:
                samples = list(op.sample_inputs("cpu", dtype, requires_grad=gradients))[:SAMPLES]
            except Exception:  # not made for this data type on the CPU
                continue
            for i, sample in enumerate(samples):
                try:
                    result = run(op, sample)
                except Exception as error:
                    result = [f"raises {type(error).__name__}", str(error)[:300]]
                print(json.dumps({"case": f"{name} {dtype_name} {i}", "result": result}), flush=True)


def sweep(device: str, into: dict[str, list[str]]) -> None:
    """Runs workers until all operators had their turn: one that dies is followed by another."""
    env = {k: v for k, v in os.environ.items() if device != "cuda" or not k.startswith("FLAGOS")}
    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0" if device == "cuda" else "1"
    env["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    start, latest = 0, -1
    until = time.time() + float(os.environ.get("SECONDS_EACH", "300"))
    while True:
        command = [sys.executable, "-W", "ignore", __file__, "--report", options.report]
        command += ["--worker", device, "--start", str(start), "--until", str(until)]
        with subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as child:
            assert child.stdout is not None
            for line in child.stdout:
                entry = json.loads(line)
                latest = entry.get("begin", latest)
                if "case" in entry:
                    into[entry["case"]] = entry["result"]
        if child.returncode == 0:
            return
        into[f"worker {latest}"] = [f"died with {child.returncode}"]
        if latest < start:
            return
        start = latest + 1


if options.worker:
    worker(options.worker, options.start)
    raise SystemExit(0)

native: dict[str, list[str]] = {}
again: dict[str, list[str]] = {}
ours: dict[str, list[str]] = {}
threads = [
    threading.Thread(target=sweep, args=(device, into))
    for device, into in (("cuda", native), ("cuda", again), ("flagos", ours))
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

counts = {"identical": 0, "CUDA does not repeat itself": 0, "both refuse": 0, "DIFFERENT": 0}
different = []
for case, result in native.items():
    if case not in again or case not in ours:
        continue
    theirs, mine = again[case], ours[case]
    if result and result[0].startswith("raises") and mine and mine[0].startswith("raises"):
        counts["both refuse"] += 1
    elif result != theirs:
        counts["CUDA does not repeat itself"] += 1
    elif result == mine:
        counts["identical"] += 1
    else:
        counts["DIFFERENT"] += 1
        different.append({"case": case, "cuda": result, "flagos": mine})
different += [{"case": case, "flagos": result} for case, result in ours.items() if case.startswith("worker")]
Path(options.report, "parity.json").write_text(json.dumps(different, indent=1))
for entry in different[:60]:
    print("DIFFERENT", json.dumps(entry)[:400])
operators = {case.split(" ")[0] for case in native}
print(f"{len(operators)} operators, {sum(counts.values())} of {len(native)} cases: {counts}")
raise SystemExit(bool(different) or not sum(counts.values()))
