# SPDX-License-Identifier: Apache-2.0
"""An installed runtime: made of this Python's PyTorch, and what executors load where nobody names another."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon import Daemon
from support.paths import FLAGOSCTL
from support.program import Program, environment
from support.waiting import wait_for

JOB = """
import torch
print(torch.ones(64, device="flagos").sum().item(), flush=True)
input()
"""


class WithoutLibtorch(Daemon):
    """A flagosd that nobody tells where libtorch is; its executors look for runtimes in `root`."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.root = root
        super().__init__(folder)

    def _start(self) -> subprocess.Popen[bytes]:
        at = self.command.index("--libtorch")
        command = self.command[:at] + self.command[at + 2 :]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                env=environment(FLAGOS_RUNTIMES=str(self.root)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        # It is not ready before an executor can start.
        wait_for("the socket", self.socket.exists, timeout=10.0)
        return process


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runtimes"


@pytest.fixture
def daemon(sockets: Path, root: Path) -> Iterator[Daemon]:
    service = WithoutLibtorch(sockets / "runtime", root)
    yield service
    service.stop()


def runtime(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(FLAGOSCTL), "runtime", *arguments, "--root", str(root)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment(), check=False
    )


def test_a_session_from_an_installed_runtime(root: Path, daemon: Daemon) -> None:
    with Program(JOB, daemon.endpoint) as job:
        job.finish(code=1)
    assert "flagosctl runtime install cpu" in job.errors, job.errors

    done = runtime(root, "install", "cpu", "--from", sys.prefix, "-o", "json")
    assert done.returncode == 0, done.stderr
    installed = json.loads(done.stdout)
    assert installed["vendors"] == ["cpu"]
    assert installed["state"] == "ok"
    assert runtime(root, "verify").returncode == 0

    def warm() -> bool:
        listed = daemon.ctl("device", "list", "-o", "json")
        if listed.returncode != 0:
            assert "flagosctl runtime install cpu" in listed.stderr
            return False
        return any(device["warm_executors"] > 0 for device in json.loads(listed.stdout)["items"])

    # flagosd starts executors again by itself, after longer and longer times.
    wait_for("an executor with the runtime", warm, timeout=30.0)
    with Program(JOB, daemon.endpoint) as job:
        assert job.line() == "64.0"
        (session,) = daemon.sessions()
        maps = Path(f"/proc/{session['executor_pid']}/maps").read_text()
        assert f"{installed['libtorch']}/libtorch_cpu.so" in maps
        assert "site-packages/torch" not in maps

        refused = runtime(root, "remove", "cpu")
        assert refused.returncode == 6
        assert str(session["executor_pid"]) in refused.stderr
        job.tell()
        job.finish()
    daemon.stop()
    wait_for("the executors to end", lambda: runtime(root, "remove", "cpu").returncode == 0, timeout=10.0)
    assert list(root.iterdir()) == []
