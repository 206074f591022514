# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in one session stays there: beside each fault a neighbour trains on, with exact results."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import traceback

NEIGHBOUR = """
    import sys, torch
    import torch.nn.functional as F
    torch.manual_seed(0)
    layers = torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 10)
    net = torch.nn.Sequential(*layers).to("flagos")
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(1)).to("flagos")
    y = torch.arange(64).remainder(10).to("flagos")
    losses = []
    for step in range(400):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 100:
            print("training", flush=True)
            sys.stdin.readline()
    print(losses)
    """


def program(code, **options):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def run(code):
    done = program(code)
    out, errors = done.communicate(timeout=120)
    assert done.returncode == 0, errors[-1500:]
    return out


def used_memory():
    """Bytes of the GPU that are in use, by whomever."""
    answer = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(answer.stdout.split()[0]) << 20


def end_of_session(code):
    """The session ends with the device's error, which names the latest calls, and says so from then on."""
    out = run(f"""
        import torch
        table = torch.ones(10, 4, device="flagos")
        session = torch.flagos.session_info()["session"]
        try:
            {code}
        except torch.AcceleratorError as error:
            print(session, "|", str(error).replace(chr(10), " "))
        else:
            raise SystemExit("no error")
        try:
            (table + 1).sum().item()
        except torch.AcceleratorError as error:
            print("afterwards |", str(error).replace(chr(10), " "))
        else:
            raise SystemExit("no error afterwards")
        """)
    print(out)
    first, afterwards = out.splitlines()
    assert "CUDA error" in first, first
    assert "the latest calls, newest first" in first, first
    assert "device is lost" in afterwards, afterwards
    assert "CUDA error" in afterwards, afterwards
    show = [os.environ["FLAGOSCTL"], "session", "show", first.split(" | ")[0]]
    for _ in range(50):  # flagosd learns of the end a moment later
        shown = subprocess.run(show, capture_output=True, text=True, check=False).stdout
        if "CUDA error" in shown:
            return first
        time.sleep(0.1)
    raise AssertionError(f"flagosctl does not show the cause: {shown}")


def device_assert():
    first = end_of_session("table[torch.tensor([3, 1000], device='flagos')].sum().item()")
    assert "aten::index.Tensor" in first, first


def illegal_address():
    # More is written than the size that the program promises.
    end_of_session(
        "torch.repeat_interleave(torch.tensor([1 << 30], device='flagos'), output_size=1).sum().item()"
    )


def out_of_memory():
    print(
        run("""
        import torch
        held = []
        try:
            while True:
                held.append(torch.empty(8 << 30, dtype=torch.uint8, device="flagos"))
        except torch.OutOfMemoryError as error:
            print(len(held), "times 8 GiB;", str(error)[:300])
        held.clear()
        assert torch.ones(5, device="flagos").sum().item() == 5
        """)
    )


def killed_executor():
    victim = program("""
        import torch
        x = torch.ones(1000, 1000, device="flagos")
        print(torch.flagos.session_info()["executor_pid"], flush=True)
        try:
            while True:
                x = (x @ x).clamp(max=1.0)
                x[0, 0].item()
        except torch.AcceleratorError as error:
            print(str(error)[:300])
        """)
    os.kill(int(victim.stdout.readline()), signal.SIGKILL)
    out, errors = victim.communicate(timeout=60)
    assert "signal 9" in out, out + errors
    assert victim.returncode == 0, errors
    print(out)


def killed_client():
    run("import torch; torch.ones(1, device='flagos').item()")
    time.sleep(8)  # a warm executor is there again
    before = used_memory()
    victim = program("""
        import time, torch
        x = torch.ones(4 << 30, dtype=torch.uint8, device="flagos")
        torch.flagos.synchronize()
        print("holds", flush=True)
        time.sleep(100)
        """)
    victim.stdout.readline()
    time.sleep(8)
    held = used_memory() - before
    victim.kill()
    victim.wait()
    began = time.monotonic()
    while used_memory() - before > held - (4 << 30) and time.monotonic() - began < 10:
        time.sleep(0.05)
    seconds = time.monotonic() - began
    print(f"{held >> 20} MiB were held; 4 GiB were back after {seconds:.2f} s")
    assert held >= 4 << 30
    assert seconds < 2


undisturbed = program(NEIGHBOUR)
expected = undisturbed.communicate("\n", timeout=120)[0].splitlines()[-1]
failed = 0
for fault in (device_assert, illegal_address, out_of_memory, killed_executor, killed_client):
    neighbour = program(NEIGHBOUR)
    try:
        assert neighbour.stdout.readline().strip() == "training"
        fault()
        out, errors = neighbour.communicate("\n", timeout=120)
        assert out.splitlines()[-1] == expected, f"the neighbour was disturbed: {errors[-500:]}"
        print("ok    ", fault.__name__, flush=True)
    except Exception:
        failed += 1
        neighbour.kill()
        print("FAILED", fault.__name__, traceback.format_exc()[-1800:], flush=True)
raise SystemExit(failed)
