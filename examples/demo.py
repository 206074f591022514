# SPDX-License-Identifier: Apache-2.0
"""Starts a private flagosd, trains and serves real models on its device, and shows that nothing is left
behind.

    demo.py [--devices 2]

Runs digits.py and sentences.py as jobs of that flagosd, with `flagosctl ps` while they run. Ends with 0
when both jobs succeeded and no process, shared memory or socket is left; Ctrl-C ends it as cleanly.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

import console
from leftovers import Leftovers

HERE = Path(__file__).resolve().parent
BIN = HERE.parent / "build" / "bin"
START_TIMEOUT = 60.0
STOP_TIMEOUT = 15.0


class DemoError(Exception):
    """Why the demo cannot go on."""


def start_flagosd(socket: Path, devices: int) -> subprocess.Popen[bytes]:
    """A flagosd that accepts clients at `socket`. In a session of its own, so that Ctrl-C leaves it to us
    to stop it."""
    torch = find_spec("torch")
    if torch is None or not torch.submodule_search_locations or not (BIN / "flagosd").exists():
        raise DemoError(f"{BIN / 'flagosd'} or torch is missing: run `make build` first")
    libtorch = Path(torch.submodule_search_locations[0]) / "lib"
    ready, ready_writer = os.pipe()
    command: list[str | Path] = [BIN / "flagosd", "--socket", socket, "--vendor", "cpu"]
    command += [
        "--devices",
        str(devices),
        "--libtorch",
        libtorch,
        "--log-level",
        "warn",
        "--ready-fd",
        str(ready_writer),
    ]
    daemon = subprocess.Popen(
        command, pass_fds=[ready_writer], start_new_session=True, stdin=subprocess.DEVNULL
    )
    os.close(ready_writer)
    with os.fdopen(ready, "rb") as end:
        if not end.readline():
            raise DemoError(
                f"flagosd ended with {daemon.wait(START_TIMEOUT)} before it was ready; its reason is above"
            )
    return daemon


def stop(process: subprocess.Popen[bytes]) -> None:
    """Asks a process to end, and makes it end."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def flagosctl(socket: Path, *arguments: str) -> str:
    done = subprocess.run(
        [BIN / "flagosctl", "--socket", socket, *arguments], capture_output=True, text=True, timeout=20
    )
    if done.returncode != 0:
        raise DemoError(f"flagosctl {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def show(socket: Path, *arguments: str) -> None:
    """Prints a command of flagosctl and what it says."""
    answer = flagosctl(socket, *arguments)
    console.title(f"$ flagosctl {' '.join(arguments)}")
    print("".join(f"  {line}\n" for line in answer.splitlines()), flush=True)


def computing(socket: Path, process: subprocess.Popen[bytes]) -> bool:
    """Whether the session of `process` is in the midst of its calls."""
    sessions = json.loads(flagosctl(socket, "ps", "-o", "json"))["items"]
    return any(s["client_pid"] == process.pid and int(s["calls"]) > 200 for s in sessions)


def run_job(name: str, socket: Path, *arguments: str) -> bool:
    """Runs a program of examples/ on the private flagosd and shows the sessions once while it computes."""
    environment = {**os.environ, "FLAGOS_ENDPOINT": f"unix://{socket}"}
    job = subprocess.Popen([sys.executable, HERE / name, *arguments], env=environment)
    try:
        shown = False
        while job.poll() is None:
            time.sleep(0.1)
            if not shown and computing(socket, job):
                show(socket, "ps")
                shown = True
        if job.returncode == 0 and not shown:
            console.note(f"{name} was too quick for flagosctl ps")
    finally:
        stop(job)
    if job.returncode != 0:
        console.note(f"{name} FAILED with {job.returncode}")
    return job.returncode == 0


def run_demo(folder: Path, devices: int) -> bool:
    socket = folder / "flagosd.sock"
    daemon = start_flagosd(socket, devices)
    try:
        console.title(f"A private flagosd serves {devices} devices at unix://{socket}")
        show(socket, "device", "list")
        good = run_job("digits.py", socket)
        good = run_job("sentences.py", socket, "--seconds", "3") and good
        show(socket, "ps", "--all")
        return good
    finally:
        stop(daemon)


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=2)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupt)

    folder = Path(tempfile.mkdtemp(prefix="flagos-demo-"))
    leftovers = Leftovers(folder)
    good, code = False, 1
    try:
        good = run_demo(folder, options.devices)
        code = 0 if good else 1
    except KeyboardInterrupt:
        console.note("interrupted")
        code = 130
    except DemoError as error:
        console.note(str(error))
    finally:
        shutil.rmtree(folder)

    console.title("Left behind")
    found = leftovers.find(timeout=5.0)
    for line in found or ["nothing: no process, no shared memory, no socket"]:
        console.note(line)
    return 1 if found else code


if __name__ == "__main__":
    sys.exit(main())
