#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requested against delivered share of a device's time, on the null vendor, whose calls take as long as told.

    tests/bench/share.py [--seconds 5] [--kernel-us 500] [--out FILE]

Two programs, each under a lease of its own, keep one device busy. What each got is counted in the programs:
calls that came back, times what a call takes; `metered` is the arbiter's own account. `settled` is the first
window of 100 ms whose share is within 5 points of what was asked for. `alone` compares a program whose lease
has a share with one whose lease has none. Figures are facts, not tests.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "bin"

WORKER = """
    import json, sys, time, torch
    seconds, kernel = float(sys.argv[1]), int(sys.argv[2])
    x = torch.ones(4, device="flagos")
    x.relu_()
    torch.flagos.synchronize()
    print("ready", flush=True)
    sys.stdin.readline()
    # One event for each few calls: when it was reached is when the device had done them.
    each = max(1, 1_000_000 // max(kernel, 1))
    done = []
    waiting = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(each):
            x.relu_()
        event = torch.flagos.Event()
        event.record()
        waiting.append(event)
        if len(waiting) >= 50:  # so much is queued that the program need not be quick
            waiting.pop(0).synchronize()
            done.append(time.monotonic())
    print(json.dumps({"each": each, "done": done}), flush=True)
    sys.stdin.readline()
    """


def environment(**more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FLAGOS")}
    return {**plain, "OMP_NUM_THREADS": "1", **more}


class Daemon:
    """A flagosd of our own on the null vendor."""

    def __init__(self, folder: Path, mode: str, kernel: int) -> None:
        self.socket = folder / "flagosd.sock"
        config = folder / "flagosd.toml"
        options = f"[vendor.null]\noptions = {{ kernel_us = {kernel // 1000} }}\n" if kernel >= 1000 else ""
        config.write_text(f'schema = 1\n[compute]\nmode = "{mode}"\n{options}')
        ready, writer = os.pipe()
        command = [BIN / "flagosd", "--config", config, "--socket", self.socket, "--vendor", "null"]
        self.process = subprocess.Popen(
            [*map(str, command), "--warm", "2", "--ready-fd", str(writer)],
            pass_fds=[writer],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=(folder / "log").open("ab"),
        )
        os.close(writer)
        with os.fdopen(ready) as end:
            if end.readline() != "ready\n":
                raise SystemExit((folder / "log").read_text())

    def lease(self, *options: str) -> str:
        command = [BIN / "flagosctl", "--socket", self.socket, "-o", "json", "lease", "open", *options]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
        return str(json.loads(done.stdout)["token"])

    def device_times(self) -> list[float]:
        """What each lease had of the device by flagosd's own account."""
        command = [BIN / "flagosctl", "--socket", self.socket, "-o", "json", "lease", "list"]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
        return [float(lease["device_time"]) for lease in json.loads(done.stdout)["items"]]

    def worker(self, token: str, seconds: float, kernel: int) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WORKER), str(seconds), str(kernel)],
            env=environment(FLAGOS_ENDPOINT=f"unix://{self.socket}", FLAGOS_TOKEN=token),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        if process.stdout.readline() != "ready\n":
            raise SystemExit("a worker did not start")
        return process


@contextmanager
def private_flagosd(kernel: int, mode: str = "work-conserving") -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory(prefix="flagos-share-") as folder:
        daemon = Daemon(Path(folder), mode, kernel)
        try:
            yield daemon
        finally:
            daemon.process.terminate()
            daemon.process.wait(30)


def tell(process: "subprocess.Popen[str]") -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def hear(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def work(answer: dict[str, Any], start: float, end: float, kernel: int) -> float:
    """Seconds of the device that a worker got between two moments."""
    return sum(start <= at < end for at in answer["done"]) * int(answer["each"]) * kernel / 1e9


def pair(weights: tuple[int, int], seconds: float, kernel: int) -> dict[str, Any]:
    with private_flagosd(kernel) as daemon:
        tokens = [daemon.lease("--weight", str(weight)) for weight in weights]
        workers = [daemon.worker(token, seconds, kernel) for token in tokens]
        for worker in workers:
            tell(worker)
        answers = [hear(worker) for worker in workers]
        metered = daemon.device_times()
        for worker in workers:
            tell(worker)
            worker.wait(30)
    asked = weights[0] / sum(weights)
    start = max(answer["done"][0] for answer in answers)
    end = min(answer["done"][-1] for answer in answers)
    got = [work(answer, start, end, kernel) for answer in answers]
    windows = []
    at = start
    while at + 0.1 <= end:
        part = [work(answer, at, at + 0.1, kernel) for answer in answers]
        windows.append(part[0] / sum(part) if sum(part) else 0.0)
        at += 0.1
    settled = next((i for i, share in enumerate(windows) if abs(share - asked) <= 0.05), len(windows))
    return {
        "requested": asked,
        "delivered": got[0] / sum(got),
        "metered": metered[0] / sum(metered),
        "busy": sum(got) / (end - start),
        "settled_ms": settled * 100,
        "worst_100ms": max(abs(share - asked) for share in windows[1:]),
    }


def maximum(percent: int, seconds: float, kernel: int) -> float:
    """What a lease with a maximum gets of a device that nobody else wants."""
    with private_flagosd(kernel, "strict") as daemon:
        worker = daemon.worker(daemon.lease("--max", str(percent)), seconds, kernel)
        tell(worker)
        answer = hear(worker)
        tell(worker)
        worker.wait(30)
    start, end = answer["done"][0], answer["done"][-1]
    return work(answer, start, end, kernel) / (end - start)


def alone(options: list[str], kernel: int, seconds: float) -> float:
    """Calls a second of a program that has the device for itself."""
    with private_flagosd(kernel) as daemon:
        worker = daemon.worker(daemon.lease(*options), seconds, kernel)
        tell(worker)
        answer = hear(worker)
        tell(worker)
        worker.wait(30)
    done = answer["done"]
    return (len(done) - 1) * int(answer["each"]) / (done[-1] - done[0])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--kernel-us", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5, help="of the comparison alone")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    kernel = options.kernel_us * 1000
    results: dict[str, Any] = {}
    for weights in ((10, 90), (25, 75), (50, 50)):
        row = pair(weights, options.seconds, kernel)
        results[f"{weights[0]}:{weights[1]}"] = row
        print(
            f"{weights[0]}:{weights[1]}  requested {row['requested']:6.1%}  delivered {row['delivered']:6.1%}"
            f"  metered {row['metered']:6.1%}"
            f"  device busy {row['busy']:6.1%}  settled within {row['settled_ms'] + 100} ms"
            f"  worst 100 ms off by {row['worst_100ms']:.1%}",
            flush=True,
        )
    for percent in (40,):
        results[f"max {percent}"] = got = maximum(percent, options.seconds, kernel)
        print(f"max {percent}%  delivered {got:6.1%} of an idle device", flush=True)
    ratios = []
    for _ in range(options.rounds):
        plain = alone([], 20_000, 1.5)
        shared = alone(["--weight", "50"], 20_000, 1.5)
        ratios.append(shared / plain)
    results["alone"] = statistics.median(ratios)
    print(f"alone, 20 us kernels: {results['alone']:.4f} of the calls without a share", end=" ")
    print(f"({min(ratios):.4f}-{max(ratios):.4f} of {len(ratios)})")
    if options.out:
        Path(options.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
