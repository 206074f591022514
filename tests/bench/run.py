#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure flagosd on this machine and print each figure beside its bound.

    tests/bench/run.py [--only client,attach,import,memory,workloads] [--pairs 7] [--out FILE]

Times are medians. A ratio is the median over alternated pairs of runs, one of each side in turn, with the
smallest and the largest beside it: on a shared machine absolute figures move, ratios of neighbouring runs
much less. Run it on an idle machine. A missed bound is shown as such and does not fail the command: figures
are facts, not tests.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
PYTHON = sys.executable
CLIENT = BUILD / "lib" / "libflagos_client.so"


@dataclass
class Row:
    """One figure. `bound` reads "<= 0.7" or ">= 0.97" in the figure's own unit; empty: none was promised."""

    group: str
    name: str
    value: float
    unit: str
    spread: str = ""
    bound: str = ""

    def met(self) -> str:
        if not self.bound:
            return ""
        sign, limit = self.bound.split()
        good = self.value <= float(limit) if sign == "<=" else self.value >= float(limit)
        return "met" if good else "MISSED"


def environment(**more: str) -> dict[str, str]:
    """One computing thread on each side, as the figures are defined."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}


def run(command: list[str], **env: str) -> str:
    done = subprocess.run(command, env=environment(**env), capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
    return done.stdout


def python(code: str, **env: str) -> dict[str, float]:
    """Run `code`, which prints one JSON object as its last line."""
    return json.loads(run([PYTHON, "-c", code], **env).strip().splitlines()[-1])


def spread(values: list[float], digits: int = 2) -> str:
    return f"{min(values):.{digits}f}-{max(values):.{digits}f} of {len(values)}"


@contextmanager
def private_flagosd(devices: int = 1, vendor: str = "cpu") -> Iterator[tuple[str, int]]:
    """A flagosd of our own: its endpoint and its pid."""
    import torch

    with tempfile.TemporaryDirectory(prefix="flagos-bench-") as folder:
        socket = f"{folder}/flagosd.sock"
        command = [
            str(BUILD / "bin/flagosd"),
            "--socket",
            socket,
            "--vendor",
            vendor,
            "--devices",
            str(devices),
        ]
        command += ["--libtorch", str(Path(torch.__file__).parent / "lib"), "--log-level", "warn"]
        daemon = subprocess.Popen(command, env=environment())
        try:
            for _ in range(200):
                if os.path.exists(socket):
                    break
                time.sleep(0.05)
            time.sleep(4)  # until the warm pool is filled
            yield f"unix://{socket}", daemon.pid
        finally:
            daemon.terminate()
            daemon.wait(15)


def measure_client(pairs: int) -> Iterator[Row]:
    del pairs
    text = run(
        [str(BUILD / "bench/client_bench"), str(CLIENT)], FLAGOS_ENDPOINT="embedded", FLAGOS_VENDOR="null"
    )
    got = json.loads(text.strip().splitlines()[-1])
    yield Row("client", "own part of a known call", got["own_part_ns"] / 1e3, "us", bound="<= 0.7")
    yield Row("client", "at::add from C++, issued", got["add_ns"] / 1e3, "us", bound="<= 1.8")
    yield Row("client", "at::add in process, CPU", got["host_add_ns"] / 1e3, "us")
    yield Row(
        "client", "at::add end to end, null vendor", got["adds_per_second"] / 1e6, "M/s", bound=">= 0.5"
    )
    yield Row("client", "round trip, both spin", got["round_trip_spinning_ns"] / 1e3, "us", bound="<= 3")
    yield Row("client", "round trip, both slept", got["round_trip_sleeping_ns"] / 1e3, "us", bound="<= 30")


ADD = """
import json, sys, time, torch
device = sys.argv[1] if len(sys.argv) > 1 else "DEVICE"
a, b = torch.ones(16, 16, device=device), torch.ones(16, 16, device=device)
sync = torch.flagos.synchronize if device == "flagos" else (lambda: None)
samples = []
with torch.no_grad():
    for _ in range(41):
        start = time.perf_counter()
        for _ in range(1000): torch.add(a, b)
        samples.append(time.perf_counter() - start)
        sync()
print(json.dumps({"us": sorted(samples)[20] * 1e3}))
"""


def measure_python_add(pairs: int) -> Iterator[Row]:
    ratios, own = [], []
    for _ in range(pairs):
        host = python(ADD.replace("DEVICE", "cpu"))["us"]
        ours = python(ADD.replace("DEVICE", "flagos"), FLAGOS_ENDPOINT="embedded", FLAGOS_VENDOR="null")["us"]
        ratios.append(ours / host)
        own.append(ours)
    yield Row("client", "torch.add from Python, issued", statistics.median(own), "us", spread(own))
    yield Row(
        "client", "torch.add from Python / CPU", statistics.median(ratios), "x", spread(ratios), "<= 1.5"
    )


IMPORT = """
import json, time
start = time.perf_counter()
import torch
print(json.dumps({"ms": (time.perf_counter() - start) * 1e3}))
"""


def measure_import(pairs: int) -> Iterator[Row]:
    more = []
    for _ in range(pairs):
        plain = python(IMPORT, TORCH_DEVICE_BACKEND_AUTOLOAD="0")["ms"]
        more.append(python(IMPORT)["ms"] - plain)
    yield Row(
        "import", "import torch, added by flagos", statistics.median(more), "ms", spread(more, 1), "<= 50"
    )


ATTACH = """
import json, time, torch
start = time.perf_counter(); torch.flagos.init(); attached = time.perf_counter()
torch.ones(8, device="flagos").add_(1).sum().item(); done = time.perf_counter()
print(json.dumps({"attach": (attached - start) * 1e3, "first": (done - attached) * 1e3}))
"""


def measure_attach(pairs: int) -> Iterator[Row]:
    attach, first = [], []
    with private_flagosd() as (endpoint, _):
        for _ in range(pairs):
            got = python(ATTACH, FLAGOS_ENDPOINT=endpoint)
            attach.append(got["attach"])
            first.append(got["first"])
            time.sleep(3)  # until the pool is warm again
    yield Row(
        "attach", "attach to a warm executor", statistics.median(attach), "ms", spread(attach, 1), "<= 50"
    )
    yield Row("attach", "first result after that", statistics.median(first), "ms", spread(first, 1), "<= 100")


RESIDENT = """
import json, torch
torch.ones(8, device="DEVICE").add_(1).sum().item()
lines = [line.split() for line in open("/proc/self/status") if line.startswith("Rss")]
got = {line[0].rstrip(":"): int(line[1]) / 1024 for line in lines}
print(json.dumps({"own": got["RssAnon"] + got["RssFile"], "shared": got["RssShmem"]}))
"""


def measure_memory(pairs: int) -> Iterator[Row]:
    more, shared = [], []
    with private_flagosd() as (endpoint, pid):
        for _ in range(pairs):
            plain = python(RESIDENT.replace("DEVICE", "cpu"), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
            ours = python(RESIDENT.replace("DEVICE", "flagos"), FLAGOS_ENDPOINT=endpoint)
            more.append(ours["own"] - plain["own"])
            shared.append(ours["shared"] - plain["shared"])
        status = Path(f"/proc/{pid}/status").read_text()
    daemon = int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024
    yield Row("memory", "flagosd, resident", daemon, "MB", bound="<= 40")
    yield Row(
        "memory", "client over plain torch, private", statistics.median(more), "MB", spread(more, 1), "<= 30"
    )
    yield Row("memory", "client over plain torch, shared", statistics.median(shared), "MB", spread(shared, 1))


# Bounds on in-process CPU's time divided by ours.
RATIO_BOUNDS = {
    "mlp_adamw": ">= 0.97",
    "lm_train_adamw": ">= 0.97",
    "lm_train_sgd_item": ">= 0.97",
    "decode_fixed_cache": ">= 0.9",
    "decode_growing_cache": ">= 0.9",
}


def measure_workloads(pairs: int) -> Iterator[Row]:
    script = str(ROOT / "tests/bench/workloads.py")
    ratios: dict[str, list[float]] = {}
    disagree: list[str] = []
    with private_flagosd() as (endpoint, _), tempfile.TemporaryDirectory() as folder:
        for _ in range(pairs):
            got = {}
            for device in ("cpu", "flagos"):
                out = f"{folder}/{device}.json"
                run(
                    [PYTHON, script, "--device", device, "--scale", "small", "--out", out],
                    FLAGOS_ENDPOINT=endpoint,
                )
                got[device] = json.loads(Path(out).read_text())["results"]
            for name, host in got["cpu"].items():
                ours = got["flagos"].get(name, {})
                if "median" not in host or "median" not in ours:
                    disagree.append(f"{name}: {ours.get('error', 'missing')}")
                    continue
                if abs(ours["check"] - host["check"]) > 1e-5 * max(1.0, abs(host["check"])):
                    disagree.append(f"{name}: {host['check']} in process, {ours['check']} on flagos")
                ratios.setdefault(name, []).append(host["median"] / ours["median"])
    for name, values in ratios.items():
        yield Row(
            "workloads",
            f"{name}, CPU time / ours",
            statistics.median(values),
            "x",
            spread(values),
            RATIO_BOUNDS.get(name, ""),
        )
    yield Row(
        "workloads",
        "check values that disagree",
        len(set(disagree)),
        "",
        "; ".join(sorted(set(disagree)))[:300],
        "<= 0",
    )


GROUPS: dict[str, list[Callable[[int], Iterator[Row]]]] = {
    "client": [measure_client, measure_python_add],
    "import": [measure_import],
    "attach": [measure_attach],
    "memory": [measure_memory],
    "workloads": [measure_workloads],
}


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default=",".join(GROUPS), help="groups, comma separated")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--out", default=str(BUILD / "bench" / "results.json"))
    options = parser.parse_args()

    import torch

    print(
        f"{processor()}, {os.cpu_count()} cores; torch {torch.__version__}; "
        f"{options.pairs} pairs; one thread a side"
    )
    rows: list[Row] = []
    for group in options.only.split(","):
        for measure in GROUPS[group]:
            for row in measure(options.pairs):
                rows.append(row)
                print(
                    f"{row.group:10s} {row.name:42s} {row.value:10.2f} {row.unit:4s} "
                    f"{row.bound:9s} {row.met():7s} {row.spread}",
                    flush=True,
                )
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    Path(options.out).write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
