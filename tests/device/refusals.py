# SPDX-License-Identifier: Apache-2.0
"""What keeps a GPU from being used is refused by name: in flagosd's log and in the client's error."""

import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch

NATIVE = Path(os.environ["FLAGOSCTL"]).parent
LIBTORCH = Path(torch.__file__).parent / "lib"
COMPUTE = 'import torch; print((torch.ones(3, device="flagos") + 1).sum().item())'
FULL = """
import sys, torch
free, _ = torch.cuda.mem_get_info()
held = []
while free > 64 << 20:
    held.append(torch.empty(free - (48 << 20), dtype=torch.uint8, device="cuda"))
    free, _ = torch.cuda.mem_get_info()
print("full", flush=True)
sys.stdin.readline()
"""


class Daemon:
    """A flagosd of the vendor cuda with `arguments`, in an environment with `variables`."""

    def __init__(self, *arguments, libtorch=LIBTORCH, **variables):
        self.folder = tempfile.TemporaryDirectory()
        self.socket = f"{self.folder.name}/flagosd.sock"
        self.log = Path(self.folder.name) / "log"
        command = [NATIVE / "flagosd", "--socket", self.socket, "--vendor", "cuda", "--libtorch", libtorch]
        self.environment = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"} | variables
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--warm", "1", *arguments], stdout=log, stderr=log, env=self.environment
            )
        deadline = time.monotonic() + 60
        while not Path(self.socket).exists() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)

    def client(self):
        env = os.environ | {"FLAGOS_ENDPOINT": f"unix://{self.socket}"}
        done = subprocess.run(
            [sys.executable, "-c", COMPUTE], env=env, capture_output=True, text=True, timeout=120
        )
        return done.returncode, (done.stdout + done.stderr).strip().splitlines()[-1]

    def doctor(self):
        env = self.environment | {"FLAGOS_ENDPOINT": f"unix://{self.socket}"}
        done = subprocess.run(
            [NATIVE / "flagosctl", "doctor"], env=env, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.folder.cleanup()


def refused(daemon, *words):
    code, last = daemon.client()
    print("client:", last)
    print("log:", [line for line in daemon.log.read_text().splitlines() if "level=info" not in line][-1:])
    assert code != 0
    for word in words:
        assert word in last, f"{word!r} is not in the client's error"
        assert word in daemon.log.read_text(), f"{word!r} is not in flagosd's log"


def visible_devices_that_do_not_exist():
    for value in ("7", "GPU-00000000-0000-0000-0000-000000000000", ""):
        with Daemon(CUDA_VISIBLE_DEVICES=value) as daemon:
            refused(daemon, "CUDA_VISIBLE_DEVICES")
            code, text = daemon.doctor()
            assert code != 0, text
            assert "CUDA_VISIBLE_DEVICES" in text, text


def visible_devices_that_exist():
    uuid = subprocess.run(
        ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[0]
    for value in ("0", uuid):
        with Daemon(CUDA_VISIBLE_DEVICES=value) as daemon:
            code, last = daemon.client()
            assert (code, last) == (0, "6.0"), last


def a_device_of_a_number_that_is_none():
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write("schema = 1\n[devices]\ninclude = [5]\n")
        file.flush()
        with Daemon("--config", file.name) as daemon:
            refused(daemon, "nvidia-smi -L")


def a_count_of_devices():
    with Daemon("--devices", "2") as daemon:
        refused(daemon, "[devices] include")


def no_libtorch_there():
    with Daemon(libtorch="/nowhere/lib") as daemon:
        refused(daemon, "/nowhere/lib")


def a_device_without_room():
    """Not even a context fits: refused with the reason, and served again when there is room."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("FLAGOS")}
    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    neighbour = subprocess.Popen(
        [sys.executable, "-c", FULL], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert neighbour.stdout.readline() == "full\n"
    try:
        with Daemon() as daemon:
            refused(daemon, "memory")
            neighbour.communicate("\n", timeout=60)
            code, last = daemon.client()
            assert (code, last) == (0, "6.0"), last
    finally:
        neighbour.kill()


failed = 0
for check in (
    visible_devices_that_do_not_exist,
    visible_devices_that_exist,
    a_device_of_a_number_that_is_none,
    a_count_of_devices,
    no_libtorch_there,
    a_device_without_room,
):
    try:
        check()
        print("ok    ", check.__name__, flush=True)
    except Exception:
        failed += 1
        print("FAILED", check.__name__, traceback.format_exc(), flush=True)
sys.exit(failed != 0)
