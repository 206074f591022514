# SPDX-License-Identifier: Apache-2.0
"""The audit log of a real flagosd; its chain is computed again with Python's own SHA-256."""

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.daemon import Daemon
from support.paths import FLAGOSCTL
from support.program import Program, environment
from support.waiting import wait_for

Record = dict[str, Any]

JOB = """
import torch
print(torch.ones(2, device="flagos").sum().item(), flush=True)
input()
"""


class Audited(NamedTuple):
    daemon: Daemon
    log: Path
    head: Path

    def records(self) -> list[Record]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def verbs(self) -> list[str]:
        return [record["verb"] for record in self.records()]

    def verify(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Without flagosd: it may have ended."""
        return self.daemon.ctl("audit", "verify", *arguments)

    def broken_at(self) -> int:
        """The record that `audit verify` names."""
        done = self.verify(str(self.log), "--head", str(self.head))
        assert done.returncode == 1, done.stdout
        what, *rest = done.stderr.splitlines()
        assert len(rest) == 2
        return int(what.rpartition(" ")[2])


@pytest.fixture
def audited(start_daemon: Callable[..., Daemon], tmp_path: Path) -> Audited:
    log, head = tmp_path / "audit.log", tmp_path / "state" / "audit.head"
    head.parent.mkdir()
    daemon = start_daemon(vendor="null", devices=2, config=f"[audit]\nfile = '{log}'\nhead = '{head}'\n")
    return Audited(daemon, log, head)


def follow(lines: list[str], previous: str = "0" * 64, first: int = 1) -> str:
    """Checks the chain as the documentation describes it; the last hash."""
    for number, line in enumerate(lines, first):
        body, separator, hashed = line.rpartition(',"hash":"')
        assert separator
        assert hashed == hashlib.sha256((body + "}").encode()).hexdigest() + '"}'
        record = json.loads(line)
        assert record["sequence"] == number
        assert record["previous"] == previous
        previous = record["hash"]
    return previous


def head_of(audited: Audited) -> tuple[int, str]:
    head = json.loads(audited.head.read_text())
    return head["sequence"], head["hash"]


def some_records(audited: Audited) -> None:
    for name in ("a", "b", "c"):
        lease = audited.daemon.ctl_json("lease", "open", "--name", name)["lease"]
        assert audited.daemon.ctl("lease", "close", lease).returncode == 0
    audited.daemon.stop()


def test_the_chain_is_what_is_documented(audited: Audited) -> None:
    some_records(audited)
    lines = audited.log.read_text().splitlines()
    last = follow(lines)
    assert head_of(audited) == (len(lines), last)
    done = audited.verify("-o", "json", str(audited.log), "--head", str(audited.head))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hash"] == last
    assert audited.verbs() == [
        "audit.start",
        "daemon.start",
        *["lease.open", "lease.close", "lease.end"] * 3,
        "daemon.stop",
    ]
    assert audited.records()[-1]["actor"]["pid"] == os.getpid(), "who sent the signal"
    assert audited.log.stat().st_mode & 0o007 == 0


def test_what_happens_to_a_session_is_recorded(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    daemon = start_daemon(devices=2, config=f"[audit]\nfile = '{log}'\n")
    audited = Audited(daemon, log, tmp_path / "audit.log.head")
    lease = daemon.ctl_json("lease", "open", "--name", "night", "--devices", "0")
    with Program(JOB, daemon.endpoint, FLAGOS_TOKEN=lease["token"]) as job:
        job.line()
        sid = daemon.sessions()[0]["id"]
        assert daemon.ctl("session", "kill", sid, "--reason", "test of audit").returncode == 0
        with Program(JOB, daemon.endpoint, FLAGOS_TOKEN="f" * 64) as wrong:
            wrong.finish(30, code=1)
        daemon.ctl("lease", "close", lease["lease"])
        client = job.pid
    daemon.stop()

    by_verb = {record["verb"]: record for record in audited.records() if "refused" not in record["result"]}
    attach, kill, end = (by_verb[f"session.{verb}"] for verb in ("attach", "kill", "end"))
    assert attach["target"] == kill["target"] == end["target"] == sid
    assert attach["actor"] == {"uid": os.getuid(), "user": attach["actor"]["user"], "pid": client}
    assert attach["after"]["lease"] == lease["lease"]
    assert kill["reason"] == "test of audit"
    assert "test of audit" in end["reason"]
    assert kill["operation"] == end["operation"] != attach["operation"]
    (refused,) = [r for r in audited.records() if r["result"].startswith("refused")]
    assert refused["verb"] == "session.attach"
    assert refused["actor"]["uid"] == os.getuid()
    assert by_verb["lease.open"]["after"] == {"name": "night", "ttl": 0, "devices": [0]}
    assert by_verb["lease.end"]["operation"] == by_verb["lease.close"]["operation"]
    for secret in (lease["token"], "f" * 64):
        assert secret not in log.read_text()
    follow(log.read_text().splitlines())


def test_a_session_that_outlives_flagosd(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    daemon = start_daemon(config=f"[audit]\nfile = '{log}'\n")
    with Program(JOB, daemon.endpoint) as job:
        job.line()
        daemon.kill()
        daemon.start_again()
        wait_for("the session's return", lambda: [s["state"] for s in daemon.sessions()] == ["RUNNING"])
        job.tell()
        job.finish()
        daemon.wait_for_end(job.pid)
    of_session = [r["verb"] for r in map(json.loads, log.read_text().splitlines()) if r["target"] == "s1"]
    assert of_session == ["session.attach", "session.resume", "session.end"]
    follow(log.read_text().splitlines())


def test_reloads_are_recorded(audited: Audited) -> None:
    drop_in = audited.daemon.folder / "conf.d" / "50.toml"
    drop_in.parent.mkdir()
    drop_in.write_text("[pool]\nmax_warm = 5\n")
    assert audited.daemon.ctl("config", "reload", "--dry-run").returncode == 0
    assert audited.daemon.ctl("config", "reload").returncode == 0
    drop_in.write_text("[pool]\nworm = 5\n")
    assert audited.daemon.ctl("config", "reload").returncode == 6
    audited.daemon.process.send_signal(signal.SIGHUP)
    wait_for("the third", lambda: audited.verbs().count("config.reload") == 3)
    accepted, refused, hangup = (r for r in audited.records() if r["verb"] == "config.reload")
    assert (accepted["before"], accepted["after"]) == ({"pool.max_warm": "16"}, {"pool.max_warm": "5"})
    assert accepted["result"] == "accepted"
    assert "worm" in refused["result"]
    assert hangup["actor"]["pid"] == os.getpid()


def test_search(audited: Audited) -> None:
    some_records(audited)

    def found(*arguments: str) -> list[Record]:
        done = audited.daemon.ctl("audit", "search", str(audited.log), "-o", "json", *arguments)
        assert done.returncode == 0, done.stderr
        items: list[Record] = json.loads(done.stdout)["items"]
        return items

    everything = audited.records()
    assert found() == everything
    assert found("--verb", "lease.close") == [r for r in everything if r["verb"] == "lease.close"]
    assert found("--target", "l2") == [r for r in everything if r["target"] == "l2"] != []
    assert found("--uid", "4242") == []
    assert found("--uid", str(os.getuid()), "--since", "1h") == everything
    since = everything[4]["time"]
    assert found("--since", since) == everything[4:]
    table = audited.daemon.ctl("audit", "search", str(audited.log), "--fields", "record,verb,target")
    assert table.stdout.splitlines()[:2] == ["RECORD  VERB          TARGET", "     1  audit.start   -"]
    assert audited.daemon.ctl("audit", "search", str(audited.log), "--since", "soon").returncode == 2


def test_a_changed_byte(audited: Audited) -> None:
    some_records(audited)
    text = audited.log.read_text()
    audited.log.write_text(text.replace('"name":"b"', '"name":"x"', 1))
    expected = 1 + [
        r["after"].get("name") if r["after"] else None for r in map(json.loads, text.splitlines())
    ].index("b")
    assert audited.broken_at() == expected


def test_a_line_that_is_gone(audited: Audited) -> None:
    some_records(audited)
    lines = audited.log.read_text().splitlines(keepends=True)
    audited.log.write_text("".join(lines[:5] + lines[6:]))
    assert audited.broken_at() == 6


def test_a_changed_record_with_a_hash_that_fits(audited: Audited) -> None:
    some_records(audited)
    lines = audited.log.read_text().splitlines()
    body = lines[6].rpartition(',"hash":"')[0].replace('"uid":', '"uid":1', 1)
    lines[6] = body + ',"hash":"' + hashlib.sha256((body + "}").encode()).hexdigest() + '"}'
    audited.log.write_text("\n".join(lines) + "\n")
    assert audited.broken_at() == 8, "the next one follows another"


def test_a_log_that_was_written_anew_from_the_middle(audited: Audited) -> None:
    """Every hash is right: only the head knows better."""
    some_records(audited)
    lines = audited.log.read_text().splitlines()
    previous = json.loads(lines[5])["hash"]
    for number in range(6, len(lines)):
        record = json.loads(lines[number]) | {"previous": previous, "reason": "nothing happened"}
        del record["hash"]
        body = json.dumps(record, separators=(",", ":"))
        previous = hashlib.sha256(body.encode()).hexdigest()
        lines[number] = f'{body[:-1]},"hash":"{previous}"}}'
    audited.log.write_text("\n".join(lines) + "\n")
    follow(lines)
    assert audited.broken_at() == len(lines)
    assert audited.verify(str(audited.log)).returncode == 0, "without the head it cannot be known"


@pytest.mark.parametrize("whole_lines", [True, False])
def test_a_tail_that_was_cut_off(audited: Audited, whole_lines: bool) -> None:
    some_records(audited)
    lines = audited.log.read_text().splitlines(keepends=True)
    audited.log.write_text("".join(lines[:-3]) + ("" if whole_lines else lines[-3][:40]))
    assert audited.broken_at() == len(lines) - 2


def test_an_older_copy_and_what_flagosd_does_about_it(audited: Audited) -> None:
    copy = audited.log.with_name("copy")
    wait_for("the start", lambda: len(audited.records()) == 2)
    shutil.copy(audited.log, copy)
    some_records(audited)
    shutil.copy(copy, audited.log)
    assert audited.broken_at() == 3
    audited.daemon.start_again()
    assert "does not verify" in audited.daemon.log.read_text()
    first = audited.records()[0]
    assert (first["sequence"], first["verb"], first["previous"]) == (1, "audit.start", "0" * 64)
    assert "record 3" in first["reason"]
    aside = [p for p in audited.log.parent.iterdir() if p.name.startswith("audit.log.broken-")]
    assert [p.read_text() for p in aside] == [copy.read_text()]
    assert list(audited.head.parent.glob("audit.head.broken-*")), "the evidence stays"
    audited.daemon.stop()
    follow(audited.log.read_text().splitlines())


def test_a_restart_goes_on(audited: Audited) -> None:
    audited.daemon.stop()
    audited.daemon.start_again()
    audited.daemon.kill()
    audited.daemon.start_again()
    audited.daemon.stop()
    starts = ["daemon.start", "daemon.stop", "daemon.start", "daemon.start", "daemon.stop"]
    assert [verb for verb in audited.verbs() if verb != "audit.continue"] == ["audit.start", *starts]
    follow(audited.log.read_text().splitlines())
    assert audited.verify(str(audited.log), "--head", str(audited.head)).returncode == 0


def test_records_that_somebody_added(audited: Audited) -> None:
    some_records(audited)
    lines = audited.log.read_text().splitlines()
    record = json.loads(lines[-1])
    forged = record | {"sequence": record["sequence"] + 1, "previous": record["hash"]}
    del forged["hash"]
    body = json.dumps(forged, separators=(",", ":"))
    with audited.log.open("a") as log:
        log.write(f'{body[:-1]},"hash":"{hashlib.sha256(body.encode()).hexdigest()}"}}\n')
    assert audited.broken_at() == len(lines) + 1
    audited.daemon.start_again()
    assert audited.records()[-2]["after"] == {"unconfirmed_records": 1, "torn_bytes": 0}


def test_rotated_files_are_one_chain(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    daemon = start_daemon(vendor="null", config=f"[audit]\nfile = '{log}'\nmax_size = '64KiB'\nkeep = 0\n")

    def rotated() -> list[Path]:
        return sorted(tmp_path.glob("audit.log.0*"))

    for _ in range(70):  # each record has the name twice
        assert daemon.ctl("lease", "close", "l" * 900).returncode == 4
    assert len(rotated()) >= 2
    assert daemon.ctl("audit", "verify").returncode == 0
    lines = [line for file in [*rotated(), log] for line in file.read_text().splitlines()]
    last = follow(lines)
    assert int(rotated()[0].suffix[1:]) == 1
    assert rotated()[0].stat().st_size <= 64 * 1024
    wait_for("the head", lambda: json.loads((tmp_path / "audit.log.head").read_text())["hash"] == last)
    for file in rotated()[:2]:
        text = file.read_text()
        file.unlink()
        done = daemon.ctl("audit", "verify")
        assert done.returncode == 1
        assert f"broken at record {int(file.suffix[1:])}\n" in done.stderr, "a file is missing"
        file.write_text(text)
    assert daemon.ctl("audit", "verify").returncode == 0
    daemon.stop()
    daemon.start_again()
    follow([line for file in [*rotated(), log] for line in file.read_text().splitlines()])


def test_a_full_disk_stops_nobody(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    """A limit of the size of files refuses bytes as a full disk does."""
    log, metrics = tmp_path / "audit.log", tmp_path / "m"
    daemon = start_daemon(vendor="null", config=f"[audit]\nfile = '{log}'\n[metrics]\nsocket = '{metrics}'\n")
    opened = daemon.ctl_json("lease", "open")["lease"]
    size = log.stat().st_size
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
    assert daemon.ctl("lease", "close", opened).returncode == 0, "what is asked for is done"
    assert log.stat().st_size == size, "half a record does not stay"
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    daemon.ctl_json("lease", "open")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [r["verb"] for r in records][-3:] == ["lease.open", "audit.lost", "lease.open"]
    assert records[-2]["after"] == {"records": 2}
    told = daemon.log.read_text()
    assert told.count("audit records are lost") == 1

    from test_metrics import scrape, values

    counted = {("flagos_audit_records_total", ""): len(records), ("flagos_audit_failures_total", ""): 2}
    wait_for("the figures", lambda: counted.items() <= values(scrape(metrics)).items(), timeout=20)
    follow(log.read_text().splitlines())


def test_a_second_flagosd_is_refused(audited: Audited, start_daemon: Callable[..., Daemon]) -> None:
    with pytest.raises(AssertionError, match="another flagosd writes the audit log"):
        start_daemon(vendor="null", config=f"[audit]\nfile = '{audited.log}'\n")


def test_no_log_is_said_so(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(vendor="null", config="[pool]\nmax_warm = 4\n")
    done = daemon.ctl("audit", "verify")
    assert done.returncode == 6
    assert "[audit] file" in done.stderr


def test_a_file_that_cannot_be_written_is_an_error_at_the_start(
    start_daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match="cannot open the audit log"):
        start_daemon(vendor="null", config=f"[audit]\nfile = '{tmp_path}/no/audit.log'\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_denied_reload_is_recorded(audited: Audited, tmp_path: Path) -> None:
    program = shutil.copy(FLAGOSCTL, "/tmp/flagosctl-test-audit")
    try:
        os.chmod(audited.daemon.socket, 0o666)
        for folder in audited.daemon.socket.parents:
            if folder.stat().st_mode & 0o005 != 0o005 and str(folder).startswith("/tmp/"):
                os.chmod(folder, folder.stat().st_mode | 0o005)
        done = subprocess.run(
            [program, "--socket", audited.daemon.socket, "config", "reload"],
            env=environment(), user=65534, group=65534, extra_groups=[], cwd="/", check=False,
        )  # fmt: skip
        assert done.returncode == 5
    finally:
        os.unlink(program)
    record = audited.records()[-1]
    assert (record["verb"], record["actor"]["uid"]) == ("config.reload", 65534)
    assert record["result"].startswith("refused")
