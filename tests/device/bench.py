# SPDX-License-Identifier: Apache-2.0
"""The yardstick of tests/bench/workloads.py on device flagos against in-process CUDA.

Alternated pairs of runs; a ratio is in-process time over ours, the median of the pairs with their range.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--report", required=True)
parser.add_argument("--pairs", type=int, default=int(os.environ.get("PAIRS", "3")))
parser.add_argument("--only", default=os.environ.get("ONLY", ""))
options = parser.parse_args()

WORKLOADS = Path(__file__).resolve().parents[1] / "bench" / "workloads.py"
REQUIRED = {
    "add_16x16": 1.1,
    "add_inplace_16x16": 1.1,
    "mm_16x16": 1.1,
    "item": 0.9,
    "mlp_adamw": 1.7,
    "decode_fixed_cache": 1.2,
    "decode_growing_cache": 1.2,
    "lm_train_adamw": 1.5,
    "lm_train_sgd_item": 1.5,
    "convnet_sgd": 1.2,
    "mm_large": 0.99,
    "h2d_pageable": 1.0,
    "d2h_pageable": 1.0,
    "h2d_pinned": 0.97,
    "d2h_pinned": 0.97,
}


def run(device: str, number: int) -> dict[str, dict[str, float]]:
    out = Path(options.report) / f"{device}{number}.json"
    command = [sys.executable, str(WORKLOADS), "--device", device, "--out", str(out)]
    command += ["--only", options.only] if options.only else []
    env = {k: v for k, v in os.environ.items() if device == "flagos" or not k.startswith("FLAGOS")}
    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1" if device == "flagos" else "0"
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env)
    if done.returncode != 0 or not out.exists():
        print(f"{device}: exit {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}", flush=True)
        return {}
    results: dict[str, dict[str, float]] = json.loads(out.read_text())["results"]
    for name, result in results.items():
        if "error" in result:
            print(f"{device}: {name}: {result['error']}", flush=True)
    return results


pairs = [(run("cuda", i), run("flagos", i)) for i in range(options.pairs)]
head = f"{'workload':24s} {'in process':>12s} {'flagos':>12s} {'ratio':>6s} {'range':>12s}"
print(f"{head} {'required':>8s}  check")
missed = 0
for name in {name: None for native, _ in pairs for name in native}:
    both = [
        (a[name], b[name]) for a, b in pairs if "median" in a.get(name, {}) and "median" in b.get(name, {})
    ]
    if not both:
        print(f"{name:24s} no figures")
        missed += 1
        continue
    ratios = sorted(a["median"] / b["median"] for a, b in both)
    ratio = statistics.median(ratios)
    agree = all(abs(a["check"] - b["check"]) <= 2e-2 * max(1.0, abs(a["check"])) for a, b in both)
    exact = all(a["check"] == b["check"] for a, b in both)
    missed += not agree or ratio < REQUIRED.get(name, 0.0)
    print(
        f"{name:24s} {statistics.median(a['median'] for a, _ in both) * 1e6:10.1f}us"
        f" {statistics.median(b['median'] for _, b in both) * 1e6:10.1f}us {ratio:6.2f}"
        f" {ratios[0]:5.2f}-{ratios[-1]:5.2f} {REQUIRED.get(name, ''):>8}"
        f"  {'exact' if exact else 'agrees' if agree else 'DIFFERS'}"
    )
print(f"{missed} rows below what is required")
