# SPDX-License-Identifier: Apache-2.0
"""A client and an executor of different versions of PyTorch: this process's, and the one that `make cuda`
builds vendors against, of which `cpu` runs without a GPU."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
# Before anything imports torch; a process asks for its devices once.
os.environ["FLAGOS_ENDPOINT"] = f"unix://{tempfile.mkdtemp(prefix='flagos-')}/flagosd.sock"

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
FLAGOSD = ROOT / "build" / "cuda" / "bin" / "flagosd"
LIBTORCH = ROOT / ".cache" / "cuda" / "torch" / "lib"
SOCKET = Path(os.environ["FLAGOS_ENDPOINT"].removeprefix("unix://"))

_daemons: list[subprocess.Popen[bytes]] = []


def pytest_sessionstart() -> None:
    if not FLAGOSD.exists():
        pytest.exit(f"there is no {FLAGOSD}: run `make cuda` first", returncode=2)
    command = [str(FLAGOSD), "--socket", str(SOCKET), "--vendor", "cpu", "--libtorch", str(LIBTORCH)]
    ready, writer = os.pipe()
    log_file = SOCKET.with_name("log")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FLAGOS")}
    with log_file.open("wb") as log:
        daemon = subprocess.Popen(
            [*command, "--ready-fd", str(writer)], pass_fds=[writer], stdout=log, stderr=log, env=environment
        )
    os.close(writer)
    _daemons.append(daemon)
    with os.fdopen(ready, "rb") as end:
        if end.readline() != b"ready\n":
            pytest.exit(f"flagosd did not start: {log_file.read_text()}", returncode=2)
    torch.set_num_threads(1)
    torch.flagos.init()


def pytest_sessionfinish() -> None:
    for daemon in _daemons:
        daemon.terminate()
        daemon.wait(30)
    shutil.rmtree(SOCKET.parent, ignore_errors=True)
