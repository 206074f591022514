# SPDX-License-Identifier: Apache-2.0
"""Metrics as Prometheus' own parser reads them, and against what flagosctl shows."""

import http.client
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.daemon import Daemon
from support.paths import FLAGOSCTL
from support.program import Program
from support.waiting import wait_for

JOB = """
    import sys, torch
    x = torch.ones(1000, 1000, device="flagos")
    for _ in range(20):
        x = x + 1
    print(x.sum().item(), flush=True)
    sys.stdin.readline()
    """


def scrape(path: Path) -> str:
    connection = http.client.HTTPConnection("flagosd", timeout=10)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(10)
    connection.sock.connect(str(path))
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    assert response.status == 200
    text = response.read().decode()
    connection.close()
    return text


def values(text: str) -> dict[tuple[str, str], float]:
    """By name and by session or device, whichever the sample is about."""
    return {
        (sample.name, sample.labels.get("sid", sample.labels.get("device", ""))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "state" not in sample.labels
    }


@pytest.fixture
def served(start_daemon: Callable[..., Daemon], sockets: Path) -> tuple[Daemon, Path]:
    path = sockets / "metrics"
    return start_daemon(devices=2, config=f"[metrics]\nsocket = '{path}'\n"), path


def test_figures_are_those_that_flagosctl_shows(served: tuple[Daemon, Path]) -> None:
    daemon, path = served
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    with Program(JOB, daemon.endpoint) as job:
        assert job.line() == "21000000.0"
        session = daemon.ctl_json("ps")["items"][0]
        shown = daemon.ctl_json("session", "show", session["id"])
        sid = session["id"]

        expected = {
            ("flagos_session_calls_total", sid): shown["calls"],
            ("flagos_session_memory_used_bytes", sid): shown["memory_used"],
            ("flagos_session_memory_peak_bytes", sid): shown["memory_peak"],
            ("flagos_device_memory_used_bytes", "0"): shown["memory_used"],
            ("flagos_device_sessions", "0"): 1,
            ("flagos_device_sessions", "1"): 1,
        }

        def agrees() -> bool:
            return expected.items() <= values(scrape(path)).items()

        wait_for("a snapshot of the idle session", agrees, timeout=20)
        assert shown["calls"] >= 20
        assert shown["memory_used"] >= 4_000_000
        total = daemon.ctl_json("device", "list")["items"][0]["memory_total"]
        assert values(scrape(path))[("flagos_device_memory_total_bytes", "0")] == total
        job.tell()
        job.finish(30)
    wait_for(
        "its end", lambda: f'flagos_session_state{{sid="{sid}",state="ENDED"}} 1' in scrape(path), timeout=20
    )


def test_names_follow_the_rules(served: tuple[Daemon, Path]) -> None:
    for family in text_string_to_metric_families(scrape(served[1])):
        assert family.name.startswith("flagos_")
        assert family.documentation
        assert (family.type == "counter") == all(s.name.endswith("_total") for s in family.samples), (
            family.name
        )


def test_a_lost_executor_is_counted(served: tuple[Daemon, Path]) -> None:
    daemon, path = served
    with Program(JOB, daemon.endpoint) as job:
        job.line()
        os.kill(daemon.ctl_json("ps")["items"][0]["executor_pid"], signal.SIGKILL)
        wait_for(
            "the loss", lambda: values(scrape(path))[("flagos_sessions_lost_total", "")] == 1, timeout=20
        )
        assert values(scrape(path))[("flagos_sessions_started_total", "")] == 1


def test_a_port_of_this_machine(start_daemon: Callable[..., Daemon]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start_daemon(vendor="null", config=f"[metrics]\nlisten = '127.0.0.1:{port}'\n")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics")
    assert "flagos_build_info" in connection.getresponse().read().decode()
    connection.close()


def test_a_wrong_address_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "flagosd.toml"
    file.write_text("schema = 1\n[metrics]\nlisten = 'localhost'\n")
    done = subprocess.run(
        [FLAGOSCTL.with_name("flagosd"), "--config", file, "--check-config"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "127.0.0.1:9466" in done.stdout + done.stderr


def test_a_refused_reload_shows(served: tuple[Daemon, Path]) -> None:
    daemon, path = served
    name = ("flagos_config_reload_ok", "")
    assert values(scrape(path))[name] == 1
    drop_in = daemon.folder / "conf.d" / "50-test.toml"
    drop_in.parent.mkdir()
    drop_in.write_text("[pool]\nworm = 1\n")
    assert daemon.ctl("config", "reload").returncode == 6
    wait_for("the refusal", lambda: values(scrape(path))[name] == 0, timeout=20)
    drop_in.unlink()
    assert daemon.ctl("config", "reload").returncode == 0
    wait_for("the success", lambda: values(scrape(path))[name] == 1, timeout=20)
