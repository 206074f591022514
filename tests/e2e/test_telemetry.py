# SPDX-License-Identifier: Apache-2.0
"""What flagosctl shows of devices, and the process that reads it: flagos-monitor."""

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import leaks
from support.daemon import Daemon
from support.program import run
from support.waiting import wait_for

FAST = "[devices]\ntelemetry = '100ms'\n"


def monitor_of(daemon: Daemon) -> int | None:
    """The number of its flagos-monitor; None: there is none now."""
    for pid, name in leaks.processes().items():
        with contextlib.suppress(OSError):
            parent = f"\nPPid:\t{daemon.pid}\n" in Path(f"/proc/{pid}/status").read_text()
            if name == "flagos-monitor" and parent and leaks.exists(pid):
                return pid
    return None


def telemetry(daemon: Daemon, device: int = 0) -> dict[str, Any]:
    shown: dict[str, Any] = daemon.ctl_json("device", "show", str(device))["telemetry"]
    return shown


def figures(daemon: Daemon, device: int = 0) -> dict[str, Any] | None:
    """Its telemetry where that has figures."""
    shown = telemetry(daemon, device)
    return shown if shown["utilisation"] is not None else None


def wait_for_figures(daemon: Daemon, device: int = 0) -> dict[str, Any]:
    shown = wait_for("figures", lambda: figures(daemon, device), timeout=30)
    assert shown
    return shown


@pytest.fixture
def watched(start_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = start_daemon(devices=2, config=FAST)
    wait_for_figures(daemon)
    return daemon


def meminfo() -> dict[str, int]:
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) << 10 for words in lines}


def test_figures_are_the_machines(watched: Daemon) -> None:
    for device in range(2):
        shown = wait_for_figures(watched, device)
        memory = meminfo()
        assert shown["memory_total"] == memory["MemTotal"]
        used = memory["MemTotal"] - memory["MemAvailable"]
        assert abs(shown["memory_used"] - used) < memory["MemTotal"] // 4, "other programs run as well"
        assert 0 <= shown["utilisation"] <= 1
        assert 0 <= shown["age"] < 60
        assert shown["problem"] == ""
        assert shown["ecc_corrected"] is None, "what a device does not tell is absent"
        assert shown["processes"] == []


def test_every_form_shows_them(watched: Daemon) -> None:
    table = watched.ctl("device", "list").stdout.splitlines()
    assert {"UTIL", "TEMP", "POWER"} <= set(table[0].split())
    assert len(table) == 3
    wide = watched.ctl("device", "list", "-o", "wide").stdout.splitlines()
    assert {"DEV-MEM", "SM-CLOCK", "ECC", "MODE"} <= set(wide[0].split())
    assert "    utilisation: " in watched.ctl("device", "list", "-o", "yaml").stdout
    details = watched.ctl("device", "show", "1").stdout
    assert ["telemetry", "power", "-"] in [line.split() for line in details.splitlines()]


def test_a_vendor_without_a_monitor_starts_nothing(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(vendor="null", config=FAST)
    assert daemon.ctl_json("device", "show", "0")["telemetry"] is None
    assert monitor_of(daemon) is None


def test_it_can_be_switched_off(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(config="[devices]\ntelemetry = '0s'\n")
    assert daemon.ctl_json("device", "show", "0")["telemetry"] is None
    assert monitor_of(daemon) is None


def test_a_killed_monitor_is_replaced_and_harms_nobody(watched: Daemon) -> None:
    for _ in range(2):
        first = wait_for("the monitor", lambda: monitor_of(watched))
        assert first
        os.kill(first, signal.SIGKILL)
        wait_for("another one", lambda before=first: monitor_of(watched) not in (None, before))
        wait_for_figures(watched)
    assert watched.alive()
    run("import torch; assert torch.ones(3, device='flagos').sum().item() == 3", watched.endpoint)
    assert "killed by signal 9" in watched.log.read_text()


def test_a_monitor_that_hangs_leaves_no_old_figures(watched: Daemon) -> None:
    first = monitor_of(watched)
    assert first
    os.kill(first, signal.SIGSTOP)
    shown = wait_for("no figures", lambda: None if figures(watched) else telemetry(watched))
    assert shown
    assert shown["age"] > 0.3, "three intervals"
    assert shown["memory_used"] is None
    wait_for("another monitor", lambda: monitor_of(watched) not in (None, first), timeout=30)
    wait_for_figures(watched)


def test_the_monitor_ends_with_its_daemon(start_daemon: Callable[..., Daemon]) -> None:
    for end in (Daemon.stop, Daemon.kill):
        daemon = start_daemon(config=FAST)
        monitor = wait_for("the monitor", lambda daemon=daemon: monitor_of(daemon))
        assert monitor
        end(daemon)
        wait_for("the monitor's end", lambda monitor=monitor: not leaks.exists(monitor))


def test_a_stopped_monitor_does_not_outlive_a_killed_daemon(watched: Daemon) -> None:
    monitor = monitor_of(watched)
    assert monitor
    os.kill(monitor, signal.SIGSTOP)
    watched.kill()
    wait_for("the monitor's end", lambda: not leaks.exists(monitor))


def test_doctor_says_why_there_are_no_figures(watched: Daemon) -> None:
    found = {check["check"] for check in watched.ctl_json("doctor")["items"]}
    assert "flagos-monitor" in found
    assert "figures of devices" not in found, "they are read"
    assert "NVIDIA driver" not in found, "the vendor cuda is not installed"

    def said() -> dict[str, str] | None:
        """Kills it each time: the pauses before it is started anew become longer."""
        if monitor := monitor_of(watched):
            os.kill(monitor, signal.SIGKILL)
        checks = watched.ctl_json("doctor")["items"]
        return next((check for check in checks if check["check"] == "figures of devices"), None)

    check = wait_for("doctor's warning", said, timeout=30)
    assert check
    assert check["result"] == "warn"
    assert "signal 9" in check["found"]
