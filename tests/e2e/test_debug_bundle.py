# SPDX-License-Identifier: Apache-2.0
"""What flagosctl daemon debug-bundle packs, and what it does not."""

import json
import stat
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

from support.daemon import Daemon
from support.paths import FLAGOSCTL
from support.program import Program, environment

JOB = """
import torch
print(torch.ones(2, device="flagos").sum().item(), flush=True)
input()
"""


def bundle(socket: Path, file: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FLAGOSCTL, "--socket", socket, "daemon", "debug-bundle", "-o", file],
        capture_output=True, text=True, timeout=60, check=False, env=environment(**env),
    )  # fmt: skip


def unpack(file: Path) -> dict[str, str]:
    """The texts by name; every one lies in one folder."""
    with tarfile.open(file) as archive:
        members = archive.getmembers()
        assert all(member.isreg() and member.name.count("/") == 1 for member in members)
        assert len({member.name.split("/")[0] for member in members}) == 1
        texts = {}
        for member in members:
            reader = archive.extractfile(member)
            assert reader
            texts[member.name.split("/")[1]] = reader.read().decode()
        return texts


def test_it_has_what_it_says_and_no_secret(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    file = tmp_path / "bundle.tar.gz"
    log = tmp_path / "flagosd.log"
    daemon = start_daemon(config=f"[daemon]\nlog_file = '{log}'\nlog_level = 'debug'\n")
    lease = daemon.ctl_json("lease", "open")
    password = "correct-horse-battery"
    with Program(JOB, daemon.endpoint, FLAGOS_TOKEN=lease["token"], DB_PASSWORD=password) as job:
        job.line()
        with log.open("a") as end:
            end.write(f"somebody logged {lease['token']} and {password} by mistake\n")
        done = bundle(daemon.socket, file, FLAGOS_TOKEN=lease["token"], DB_PASSWORD=password)
        assert done.returncode == 0, done.stderr
        sid = daemon.sessions()[0]["id"]
        job.tell()
        job.finish()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    texts = unpack(file)
    assert set(texts) == {
        "README.txt", "config.json", "devices.json", "doctor.json", "log.txt", "runtimes.json",
        "sessions.json", "system.txt", "version.json",
    }  # fmt: skip
    everything = "".join(texts.values())
    assert lease["token"] not in everything
    assert password not in everything
    assert "somebody logged [redacted] and [redacted] by mistake" in texts["log.txt"]
    versions = json.loads(texts["version.json"])["items"]
    assert [version["part"] for version in versions] == ["flagosctl", "flagosd"]
    assert [s["id"] for s in json.loads(texts["sessions.json"])["items"]] == [sid]
    assert {c["check"] for c in json.loads(texts["doctor.json"])["items"]} >= {
        "endpoint",
        "devices",
        "limits",
    }
    assert any(key["key"] == "pool.warm" for key in json.loads(texts["config.json"])["items"])
    assert "kernel: Linux" in texts["system.txt"]


def test_without_flagosd_it_says_what_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "bundle.tar.gz"
    done = bundle(tmp_path / "no.sock", file)
    assert done.returncode == 0, done.stderr
    assert "without sessions.json: " in done.stdout
    texts = unpack(file)
    assert "sessions.json" not in texts
    assert "system.txt" in texts
    assert "not there: sessions.json" in texts["README.txt"]


def test_it_overwrites_nothing(tmp_path: Path) -> None:
    file = tmp_path / "there"
    file.write_text("mine")
    done = bundle(tmp_path / "no.sock", file)
    assert done.returncode == 6
    assert len(done.stderr.splitlines()) == 3
    assert file.read_text() == "mine"
