# SPDX-License-Identifier: Apache-2.0
"""flagosctl's figures of each GPU are nvidia-smi's, and neither flagosd nor flagos-monitor is on a GPU."""

import json
import os
import subprocess
import sys
import textwrap
import time
import traceback
from pathlib import Path

MIB = 1 << 20
# What nvidia-smi calls it: our name, what one of its units is of ours, how far apart two readings may lie.
FIGURES = {
    "memory.used": ("memory_used", MIB, 512 * MIB),
    "memory.total": ("memory_total", MIB, MIB),
    "temperature.gpu": ("temperature", 1, 8),
    "power.draw": ("power", 1, 100),
    "enforced.power.limit": ("power_limit", 1, 1),
    "clocks.sm": ("sm_clock", 1, 400),
    "clocks.max.sm": ("sm_clock_max", 1, 1),
    "clocks.mem": ("memory_clock", 1, 400),
    "clocks.max.mem": ("memory_clock_max", 1, 1),
    "ecc.errors.uncorrected.volatile.total": ("ecc_uncorrected", 1, 0),
    "utilization.gpu": ("utilisation", 0.01, 1),
}

IDLE = """
    import sys, torch
    x = torch.ones(1 << 30, dtype=torch.uint8, device="flagos")
    torch.flagos.synchronize()
    print(torch.flagos.session_info()["executor_pid"], flush=True)
    sys.stdin.readline()
    """
BUSY = """
    import time, torch
    x = torch.ones(4096, 4096, device="flagos")
    end = time.monotonic() + 8
    while time.monotonic() < end:
        for _ in range(20):
            y = x @ x
        y[0, 0].item()
    """


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def program(code):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def devices():
    command = (os.environ["FLAGOSCTL"], "--timeout", "60s", "device", "list", "-o", "json")
    return json.loads(output(*command))["items"]


def smi(*names):
    """For each GPU's UUID what nvidia-smi says."""
    lines = output("nvidia-smi", f"--query-gpu=uuid,{','.join(names)}", "--format=csv,noheader,nounits")
    rows = [[word.strip() for word in line.split(",")] for line in lines.splitlines() if line]
    return {row[0].removeprefix("GPU-").lower(): dict(zip(names, row[1:], strict=True)) for row in rows}


def process(name):
    """The pids of processes of that name."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/comm"):
        try:
            if entry.read_text().strip() == name:
                found.append(int(entry.parent.name))
        except OSError:
            pass  # it ended meanwhile
    return found


def wait_for(what, get, seconds=30):
    deadline = time.monotonic() + seconds
    while not (value := get()):
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(0.2)
    return value


def differences():
    """What nvidia-smi and flagosctl tell differently now; clocks and power may be changing just then."""
    wrong = []
    theirs = smi(*FIGURES)
    for device in devices():
        told = theirs[device["uuid"]]
        for name, (ours, unit, apart) in FIGURES.items():
            mine = device["telemetry"][ours]
            if told[name].startswith("["):  # "[N/A]"
                if mine is not None and name != "utilization.gpu":
                    wrong.append(f"{name}: {mine}, and nvidia-smi has none")
            elif mine is None or abs(mine - float(told[name]) * unit) > apart:
                wrong.append(f"{name}: {mine}, not {told[name]}")
    return wrong


def figures_are_those_of_nvidia_smi():
    wait_for("figures", lambda: all(d["telemetry"]["temperature"] is not None for d in devices()))
    try:
        wait_for("agreement", lambda: not differences())
    except AssertionError:
        raise AssertionError(differences()) from None
    finally:
        print(smi(*FIGURES))
        print(json.dumps(devices()))
    driver = next(iter(smi("driver_version").values()))["driver_version"]
    assert devices()[0]["telemetry"]["driver"] == driver


def memory_names_the_executor():
    job = program(IDLE)
    try:
        executor = int(job.stdout.readline())

        def held():
            processes = [p for d in devices() for p in d["telemetry"]["processes"]]
            return [p for p in processes if p["pid"] == executor and (p["memory"] or 0) >= 1 << 30]

        try:
            print(wait_for("the executor among the GPU's processes", held))
        except AssertionError:
            # In a pid namespace the driver may tell numbers of another, or none; so does nvidia-smi then.
            apps = output(
                "nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"
            )
            told = [d["telemetry"]["processes"] for d in devices()]
            print(f"executor {executor}; flagosctl {told}; nvidia-smi {apps!r}")
            assert str(executor) not in apps.replace(",", " ").split(), "only nvidia-smi names it"
    finally:
        job.communicate("\n", timeout=60)


def a_busy_gpu_shows():
    job = program(BUSY)
    try:
        wait_for("a utilisation", lambda: any((d["telemetry"]["utilisation"] or 0) > 0.2 for d in devices()))
    finally:
        job.wait(60)


def nobody_of_ours_is_on_a_gpu():
    apps = output("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader,nounits").split()
    named = [str(p["pid"]) for d in devices() for p in d["telemetry"]["processes"]]
    for name in ("flagosd", "flagos-monitor"):
        pids = process(name)
        assert pids, f"there is no {name}"
        for pid in pids:
            assert str(pid) not in apps + named, f"{name} {pid} has a context"
            maps = Path(f"/proc/{pid}/maps").read_text()
            files = [os.path.realpath(file) for file in Path(f"/proc/{pid}/fd").iterdir()]
            print(name, pid, [file for file in files if "nvidia" in file])
            # The monitor's files do not tell: NVML itself maps libcuda.so and opens what the driver has.
            if name == "flagosd":
                assert "libnvidia-ml" not in maps
                assert "libcuda.so" not in maps
                assert not [f for f in files if "nvidia" in f], files
    assert len(process("flagos-monitor")) == 1


def doctor_finds_nothing_wrong():
    done = subprocess.run([os.environ["FLAGOSCTL"], "doctor"], capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


failed = 0
for check in (
    figures_are_those_of_nvidia_smi,
    memory_names_the_executor,
    a_busy_gpu_shows,
    nobody_of_ours_is_on_a_gpu,
    doctor_finds_nothing_wrong,
):
    try:
        check()
        print("ok    ", check.__name__, flush=True)
    except Exception:
        failed += 1
        print("FAILED", check.__name__, traceback.format_exc()[-1800:], flush=True)
raise SystemExit(failed)
