# SPDX-License-Identifier: Apache-2.0
"""flagosctl against a real flagosd with real sessions."""

import csv
import io
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable

import pytest
from support.daemon import Daemon
from support.paths import FLAGOSCTL
from support.program import Program, environment
from support.waiting import wait_for

JOB = """
import torch
x = torch.ones(2**18, device="flagos")
print(x.sum().item(), flush=True)
input()
"""


def test_ps_in_every_form(daemon: Daemon) -> None:
    with Program(JOB, daemon.endpoint) as job:
        job.line()
        (session,) = daemon.sessions()
        assert session["origin"] == f"host:{job.pid}"
        assert isinstance(session["memory_used"], int)
        assert session["memory_used"] >= 2**20

        wide = daemon.ctl("ps", "-o", "wide").stdout.splitlines()
        assert wide[0].split()[:3] == ["SID", "OWNER", "ORIGIN"]
        assert {"QDEPTH", "BLOCKED", "CALLS", "EXEC-PID", "CLIENT-PID", "PROGRAM", "LAST-OP"} <= set(
            wide[0].split()
        )
        assert str(session["executor_pid"]) in wide[1].split()

        rows = list(csv.DictReader(io.StringIO(daemon.ctl("ps", "-o", "csv").stdout)))
        assert rows[0]["id"] == session["id"]
        assert int(rows[0]["memory_used_bytes"]) >= 2**20
        assert float(rows[0]["age_seconds"]) > 0

        shown = daemon.ctl_json("session", "show", session["id"])
        assert shown["kind"] == "Session"
        assert shown["state"] == "RUNNING"
        assert shown["started"].endswith("Z")
        job.tell()
        job.finish()
    wait_for("the end of the session", lambda: not daemon.sessions(), timeout=2.0)
    assert daemon.ctl_json("session", "show", session["id"])["state"] == "ENDED", (
        "it is remembered for a while"
    )


def test_ids_take_unique_prefixes(daemon: Daemon) -> None:
    with Program(JOB, daemon.endpoint) as job:
        job.line()
        (session,) = daemon.sessions()
        assert daemon.ctl_json("session", "show", session["id"][:1])["id"] == session["id"]
        job.tell()
        job.finish()


def test_a_dry_run_ends_nothing(daemon: Daemon) -> None:
    with Program(JOB, daemon.endpoint) as job:
        job.line()
        (session,) = daemon.sessions()
        done = daemon.ctl("session", "kill", session["id"], "--reason", "test", "--dry-run")
        assert done.returncode == 0, done.stderr
        assert session["id"] in done.stdout
        assert [s["state"] for s in daemon.sessions()] == ["RUNNING"]
        job.tell()
        job.finish()


def test_watch_tells_each_change(daemon: Daemon) -> None:
    command = [FLAGOSCTL, "--socket", daemon.socket, "session", "watch", "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as watch:
        assert watch.stdout
        try:
            with Program(JOB, daemon.endpoint) as job:
                job.line()
                job.tell()
                job.finish()
            states = []
            while "ENDED" not in states:
                event = json.loads(watch.stdout.readline())
                assert event["kind"] == "SessionEvent"
                states.append(event["session"]["state"])
            assert "RUNNING" in states
        finally:
            watch.kill()


def test_watched_json_is_one_object_a_line(daemon: Daemon) -> None:
    command = [FLAGOSCTL, "--socket", daemon.socket, "device", "list", "--watch=100ms", "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as watch:
        assert watch.stdout
        try:
            for _ in range(3):
                assert json.loads(watch.stdout.readline())["kind"] == "DeviceList"
        finally:
            watch.kill()


def test_a_watch_ends_with_its_daemon(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(vendor="null")
    command = [FLAGOSCTL, "--socket", daemon.socket, "session", "watch"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as watch:
        wait_for("the watch", lambda: daemon.alive() and watch.poll() is None)
        daemon.stop()
        assert watch.wait(10) == 3


def test_lease_of_an_unknown_device_is_refused(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(vendor="null", devices=2)
    done = daemon.ctl("lease", "open", "--devices", "7")
    assert done.returncode == 4, done.stderr
    opened = daemon.ctl_json("lease", "open", "--devices", "1", "--ttl", "1m", "--name", "night")
    assert len(opened["token"]) == 64
    assert daemon.ctl("lease", "close", opened["lease"]).returncode == 0
    assert daemon.ctl("lease", "close", opened["lease"]).returncode == 4


def test_dry_runs_of_leases_change_nothing(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(vendor="null", devices=2)
    done = daemon.ctl("lease", "open", "--devices", "1", "--dry-run")
    assert (done.returncode, done.stdout) == (0, "would open a lease of devices 1\n")
    assert daemon.ctl("lease", "open", "--devices", "7", "--dry-run").returncode == 4
    assert daemon.ctl("lease", "close", "l1", "--dry-run").returncode == 4, "none was opened"
    assert daemon.ctl_json("lease", "open")["lease"] == "l1"
    assert daemon.ctl("lease", "close", "l1", "--dry-run").returncode == 0
    assert daemon.ctl("lease", "close", "l1").returncode == 0


def test_several_sessions_are_ended_at_once(daemon: Daemon) -> None:
    with Program(JOB, daemon.endpoint) as first, Program(JOB, daemon.endpoint) as second:
        first.line()
        second.line()
        ids = [session["id"] for session in daemon.sessions()]
        done = daemon.ctl("session", "kill", *ids, "s99", "--reason", "test")
        assert done.returncode == 8, done.stderr
        assert [line.split()[:3] for line in done.stdout.splitlines()] == [
            ["ended", "session", i] for i in ids
        ]
        assert "s99: there is no session" in done.stderr
        assert len(done.stderr.splitlines()) == 3
        assert daemon.sessions() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_without_permission_is_denied(daemon: Daemon) -> None:
    with tempfile.TemporaryDirectory() as folder:  # the checkout may lie where nobody else may look
        os.chmod(folder, 0o755)
        done = subprocess.run(
            [shutil.copy(FLAGOSCTL, folder), "--socket", daemon.socket, "ps"],
            capture_output=True, text=True, timeout=30, env=environment(), check=False, cwd=folder,
            user=65534, group=65534, extra_groups=[],
        )  # fmt: skip
    assert done.returncode == 5, done.stderr
    assert len(done.stderr.splitlines()) == 3


def test_doctor_finds_what_is_wrong(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(vendor="nosuch")
    done = daemon.ctl("doctor", "-o", "json")
    assert done.returncode == 1
    failed = {
        check["check"]: check for check in json.loads(done.stdout)["items"] if check["result"] == "fail"
    }
    assert set(failed) == {"devices"}
    assert "nosuch" in failed["devices"]["found"] + failed["devices"]["advice"]
