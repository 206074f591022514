# SPDX-License-Identifier: Apache-2.0
"""Shares of a GPU's time: what leases get, and what batch work beside it costs a decoder of class rt."""

import json
import os
import statistics
import subprocess
import sys
import textwrap
from pathlib import Path

SECONDS = 10
BENCH = Path(__file__).resolve().parents[1] / "bench"

# Keeps the GPU busy with products of matrices, and says how many were done in each tenth of a second.
TRAINER = """
    import json, sys, time, torch
    seconds = float(sys.argv[1])
    a = torch.randn(2048, 2048, device="flagos")
    b = torch.empty_like(a)
    def work():
        for _ in range(4):
            torch.mm(a, a, out=b)
        event = torch.flagos.Event()
        event.record()
        return event
    work().synchronize()
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.monotonic()
    waiting, done = [], []
    while time.monotonic() < start + seconds:
        waiting.append(work())
        if len(waiting) >= 100:
            waiting.pop(0).synchronize()
            done.append(time.monotonic())
    print(json.dumps(done), flush=True)
    sys.stdin.readline()
    """

# As mlp_adamw of tests/bench/workloads.py, for ever.
BATCH = """
    import sys, torch
    import torch.nn.functional as F
    from torch import nn
    layers = [nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 1000)]
    net = nn.Sequential(*layers).to("flagos")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    x = torch.randn(256, 1024, device="flagos")
    y = torch.arange(256, device="flagos") % 1000
    steps = 0
    while True:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        steps += 1
        if steps % 20 == 0:
            torch.flagos.synchronize()
            if steps == 20:
                print("ready", flush=True)
    """

# decode_fixed_cache: a token a step, over a cache whose size does not change.
DECODER = """
    import json, sys, time, torch
    sys.path.insert(0, sys.argv[2])
    import decoder
    shape = decoder.FULL
    net = decoder.make_decoder(shape).to("flagos").eval()
    size = 1, shape.key_heads, 256, shape.head
    zeros = lambda: torch.zeros(size, dtype=shape.dtype, device="flagos")
    past = [(zeros(), zeros()) for _ in range(shape.layers)]
    cos = torch.ones(1, 1, 1, shape.head // 2, dtype=shape.dtype, device="flagos")
    cos = torch.cat((cos, cos), -1)
    sin = torch.zeros_like(cos)
    token = torch.zeros(1, 1, dtype=torch.long, device="flagos")
    @torch.no_grad()
    def step():
        logits, _ = net(token, cos, sin, past)
        return logits[0, -1].argmax().item()
    for _ in range(20):
        step()
    print("ready", flush=True)
    sys.stdin.readline()
    times = []
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(json.dumps(times), flush=True)
    sys.stdin.readline()
    """


def lease(*terms):
    """The token of a new lease."""
    command = [os.environ["FLAGOSCTL"], "-o", "json", "lease", "open", *terms]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["token"]


class Job:
    """A program under a lease of its own; ready once constructed."""

    def __init__(self, code, *terms):
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(SECONDS), str(BENCH)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "FLAGOS_TOKEN": lease(*terms)},
        )
        assert self.process.stdout.readline() == "ready\n", "the program did not start"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def begin(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())


def pair(first, second):
    with Job(TRAINER, "--weight", str(first)) as one, Job(TRAINER, "--weight", str(second)) as two:
        one.begin()
        two.begin()
        done = one.answer(), two.answer()
    start, end = max(d[0] for d in done), min(d[-1] for d in done)
    # Both do the same work: what each finished is what it had of the GPU.
    got = [sum(start <= at < end for at in d) for d in done]
    asked = first / (first + second)
    windows = []
    for i in range(int((end - start) / 0.1)):
        part = [sum(start + i * 0.1 <= at < start + (i + 1) * 0.1 for at in d) for d in done]
        if sum(part):
            windows.append(part[0] / sum(part))
    delivered = got[0] / sum(got)
    print(
        f"{first}:{second}  requested {asked:.1%}  delivered {delivered:.1%}"
        f"  {sum(got) / (end - start):.0f} rounds a second  100 ms off by at most"
        f" {max(abs(w - asked) for w in windows[1:]):.1%}",
        flush=True,
    )
    return delivered - asked


def decode():
    """Step times of the decoder, in seconds."""
    with Job(DECODER, "--class", "rt") as job:
        job.begin()
        return job.answer()


def shown(name, times):
    p50, p99 = statistics.median(times), statistics.quantiles(times, n=100)[98]
    print(f"{name}: {len(times)} steps, p50 {p50 * 1e3:.2f} ms, p99 {p99 * 1e3:.2f} ms", flush=True)
    return p99


def main():
    with Job(TRAINER) as job:
        job.begin()
        done = job.answer()
    print(f"alone: {(len(done) - 1) / (done[-1] - done[0]):.0f} rounds a second", flush=True)
    errors = [pair(10, 90), pair(25, 75), pair(50, 50)]

    alone = shown("rt decoder alone", decode())
    with Job(BATCH, "--class", "batch"), Job(BATCH, "--class", "batch"), Job(BATCH, "--class", "batch"):
        beside = shown("rt decoder beside three batch trainers", decode())
    print(f"p99 beside batch work: {beside / alone - 1:+.1%}")
    worst = max(abs(error) for error in errors)
    print(f"shares: off by {worst:.1%} at most")
    if worst > 0.02:
        raise SystemExit("a share was missed by more than 2 points")


if __name__ == "__main__":
    main()
