# SPDX-License-Identifier: Apache-2.0
"""Changing the configuration of a flagosd that runs, with sessions that compute meanwhile."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.daemon import Daemon
from support.program import Program, run
from support.waiting import wait_for

COMPUTE = """
import torch
x = torch.ones(1000, device="flagos")
print("ready", flush=True)
while input() == "go":
    for _ in range(200):
        x = x + 1
    print(x[0].item(), flush=True)
"""


class Configured:
    """A flagosd and its drop-in."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.file = daemon.folder / "flagosd.toml"
        self.drop_in = daemon.folder / "conf.d" / "50-test.toml"
        self.drop_in.parent.mkdir()

    def executors(self) -> int:
        children = Path(f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/children").read_text().split()
        names = [
            Path(f"/proc/{child}/comm").read_text() for child in children if Path(f"/proc/{child}").exists()
        ]
        return sum(name.startswith("flagos-ex") for name in names)

    def value(self, key: str) -> tuple[str, str]:
        """What flagosd runs with, and where that comes from."""
        items = self.daemon.ctl_json("config", "show", "--effective")["items"]
        (item,) = (item for item in items if item["key"] == key)
        return item["value"], item["origin"]


@pytest.fixture
def configured(start_daemon: Callable[..., Daemon]) -> Configured:
    daemon = start_daemon(warm=None, config="[pool]\nwarm = 1\n")
    return Configured(daemon)


def test_executors_follow_a_drop_in(configured: Configured) -> None:
    daemon = configured.daemon
    wait_for("the first executor", lambda: configured.executors() == 1)
    configured.drop_in.write_text("[pool]\nwarm = 3\n")
    diff = daemon.ctl_json("config", "diff")["items"]
    assert [(c["key"], c["running"], c["value"], c["restart"]) for c in diff] == [
        ("pool.warm", "1", "3", False)
    ]
    assert configured.value("pool.warm") == ("1", f"{configured.file}:3")

    reloaded = daemon.ctl("config", "reload")
    assert reloaded.returncode == 0, reloaded.stderr
    assert reloaded.stdout == f"reloaded:\n  pool.warm: 1 -> 3 ({configured.drop_in}:2)\n"
    wait_for("three executors", lambda: configured.executors() == 3, timeout=60)
    assert configured.value("pool.warm") == ("3", f"{configured.drop_in}:2")
    assert daemon.ctl_json("config", "diff")["items"] == []

    configured.drop_in.unlink()
    assert daemon.ctl("config", "reload").returncode == 0
    wait_for("one executor", lambda: configured.executors() == 1)
    run("import torch; assert torch.ones(3, device='flagos').sum().item() == 3", daemon.endpoint)


def test_a_wrong_file_keeps_everything_and_sessions_compute(configured: Configured) -> None:
    daemon = configured.daemon
    with Program(COMPUTE, daemon.endpoint) as program:
        assert program.line() == "ready"
        before = daemon.ctl("config", "show", "--effective").stdout
        expected = 1
        for text in ["[pool]\nwarm = 2\nworm = 1\n", "[session]\nring = '3MiB'\n", "[pool\n"]:
            configured.drop_in.write_text(text)
            program.tell("go")
            refused = daemon.ctl("config", "reload")
            assert refused.returncode == 6
            lines = refused.stderr.splitlines()
            assert len(lines) == 3, refused.stderr
            assert f"{configured.drop_in}:" in lines[1]
            assert daemon.ctl("config", "check").returncode == 6
            expected += 200
            assert float(program.line()) == expected
        assert daemon.ctl("config", "show", "--effective").stdout == before
        assert "configuration not reloaded" in daemon.log.read_text()
        configured.drop_in.write_text("[session]\nring = '1MiB'\n")
        assert daemon.ctl("config", "check").returncode == 0
        assert daemon.ctl("config", "reload").returncode == 0
        program.tell("go")
        assert float(program.line()) == expected + 200
        run("import torch; assert torch.ones(3, device='flagos').sum().item() == 3", daemon.endpoint)
        program.tell("end")
        program.finish()


def test_sighup_does_the_same(configured: Configured) -> None:
    daemon = configured.daemon
    configured.drop_in.write_text("[daemon]\nlog_level = 'error'\n")
    os.kill(daemon.pid, signal.SIGHUP)
    wait_for("the new level", lambda: configured.value("daemon.log_level")[0] == "error")
    size = daemon.log.stat().st_size
    run("import torch; torch.ones(3, device='flagos').sum().item()", daemon.endpoint)
    assert daemon.log.stat().st_size == size, "the end of a session is no error"
    configured.drop_in.write_text("[daemon]\nlog_level = 'debug'\n")
    os.kill(daemon.pid, signal.SIGHUP)
    wait_for("the new level", lambda: configured.value("daemon.log_level")[0] == "debug")
    assert daemon.log.stat().st_size > size


def test_the_log_moves_to_another_file(configured: Configured) -> None:
    log = configured.daemon.folder / "other.log"
    configured.drop_in.write_text(f"[daemon]\nlog = 'json'\nlog_file = '{log}'\n")
    assert configured.daemon.ctl("config", "reload").returncode == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert "configuration reloaded" in [line["msg"] for line in lines]


def test_what_needs_a_restart_is_said_and_kept(configured: Configured) -> None:
    daemon = configured.daemon
    configured.drop_in.write_text("[devices]\ninclude = [0]\nvendor = 'null'\n")
    dry = daemon.ctl("config", "reload", "--dry-run")
    assert "devices.include: [] -> [0]" in dry.stdout
    reloaded = daemon.ctl("config", "reload")
    assert reloaded.returncode == 0
    assert "takes effect after a restart" in reloaded.stdout
    assert configured.value("devices.include") == ("[]", "default")
    assert configured.value("devices.vendor") == ("cpu", "flag --vendor"), "no file beats a flag"
    daemon.stop()
    daemon.start_again()
    assert configured.value("devices.include") == ("[0]", f"{configured.drop_in}:2")


def test_a_flagosd_without_files_has_nothing_to_reload(daemon: Daemon) -> None:
    done = daemon.ctl("config", "reload")
    assert done.returncode == 6
    assert "--config" in done.stderr
    assert len(done.stderr.splitlines()) == 3
