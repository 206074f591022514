# SPDX-License-Identifier: Apache-2.0
"""flagosctl top on a terminal of its own, as a person sees it: a terminal emulator keeps the screen."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import tempfile
import termios
from collections.abc import Callable
from typing import Self

import pyte
import pytest
from support.daemon import Daemon
from support.paths import FLAGOSCTL
from support.program import Program, environment
from support.waiting import wait_for

WIDTH, HEIGHT = 110, 20
JOB = """
import torch
x = torch.ones(2**18, device="flagos")
print(x.sum().item(), flush=True)
input()
"""


def _take_terminal() -> None:
    """Ctrl-C reaches those only whose terminal it is."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """flagosctl on a pseudo-terminal. Leaving the context ends it."""

    def __init__(
        self, daemon: Daemon, *arguments: str, program: str = str(FLAGOSCTL), **popen: object
    ) -> None:
        self.master, slave = pty.openpty()
        self.screen = pyte.Screen(WIDTH, HEIGHT)
        self._stream = pyte.ByteStream(self.screen)
        self._resize(HEIGHT, WIDTH)
        self.process = subprocess.Popen(
            [program, "--socket", str(daemon.socket), "top", "--interval", "200ms", *arguments],
            stdin=slave, stdout=slave, stderr=subprocess.PIPE,
            env=environment(TERM="xterm", LC_ALL="C.UTF-8"),
            start_new_session=True, preexec_fn=_take_terminal, **popen,
        )  # fmt: skip
        os.close(slave)

    def _resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        assert self.process.stderr
        self.process.stderr.close()
        os.close(self.master)

    def lines(self) -> list[str]:
        """The screen now, without white space at the ends of lines."""
        while select.select([self.master], [], [], 0)[0]:
            try:
                self._stream.feed(os.read(self.master, 1 << 16))
            except OSError:  # it has ended
                break
        return [line.rstrip() for line in self.screen.display]

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def shows(self, text: str) -> None:
        try:
            wait_for(
                f"{text!r} on the screen", lambda: any(text in line for line in self.lines()), timeout=15
            )
        except AssertionError as error:
            raise AssertionError(f"{error}\n" + "\n".join(self.lines())) from None

    def sessions(self) -> list[str]:
        """The SIDs, from above."""
        lines = self.lines()
        (heading,) = (i for i, line in enumerate(lines) if line.startswith("SID"))
        return [line.split()[0] for line in lines[heading + 1 : -1] if line]


def test_the_screen(daemon: Daemon) -> None:
    with Program(JOB, daemon.endpoint) as job, Terminal(daemon) as top:
        job.line()
        top.shows("RUNNING")
        (session,) = daemon.sessions()
        lines = top.lines()
        assert re.fullmatch(r"flagosd \S+ at \S+flagosd\.sock  \d\d:\d\d:\d\d UTC", lines[0])
        assert re.fullmatch(
            r"DEV +MODEL +HEALTH +COMPUTE% +MEM-USED/TOTAL +UTIL +TEMP +POWER +SESS", lines[1]
        )
        assert re.match(r" *0 +.* HEALTHY ", lines[2])
        assert lines[3] == "sessions: 1 of 1   sort: BUSY (descending)   device: all   filter: -"
        assert lines[4].split() == [
            "SID", "OWNER", "DEV", "STATE", "BUSY", "MEM/QUOTA",
            "DEV-TIME", "QDEPTH", "IDLE", "AGE", "PROGRAM",
        ]  # fmt: skip
        assert lines[5].split()[:4] == [session["id"], session["owner"], "0", "RUNNING"]
        assert lines[-1] == "s sort  r reverse  f filter  d device  p pause  k kill  ? help  q quit"
        top.shows("0%")
        assert top.screen.buffer[5][0].reverse, "the chosen session"
        top.type("?")
        top.shows("Any key goes back")
        top.type("x")
        top.shows("sessions: 1 of 1")
        top.type("q")
        assert top.process.wait(10) == 0
        job.tell()
        job.finish()


def test_the_terminal_is_as_before(daemon: Daemon) -> None:
    with Terminal(daemon) as top:
        top.shows("sessions: 0 of 0")
        assert termios.tcgetattr(top.master)[3] & termios.ECHO == 0
        top.type("\x03")
        top.process.wait(10)
        after = termios.tcgetattr(top.master)
        assert after[3] & (termios.ECHO | termios.ICANON) == termios.ECHO | termios.ICANON


def test_keys(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(devices=2)
    lease = daemon.ctl_json("lease", "open", "--devices", "1")
    with (
        Program(JOB, daemon.endpoint) as first,
        Program(JOB, daemon.endpoint, FLAGOS_TOKEN=lease["token"]) as second,
        Terminal(daemon) as top,
    ):
        first.line()
        second.line()
        top.shows("sessions: 2 of 2")
        one = daemon.session_of(first.pid)["id"]
        two = daemon.session_of(second.pid)["id"]
        for _ in range(6):
            top.type("s")  # from BUSY over AGE and PROGRAM to SID
        top.type("s")
        top.shows("sort: SID (descending)")
        assert top.sessions() == sorted([one, two], reverse=True)
        top.type("r")
        wait_for("the other order", lambda: top.sessions() == sorted([one, two]))
        top.type("d")
        top.shows("sessions: 1 of 2   sort: SID   device: 0")
        assert top.sessions() == [one]
        top.type("dd")
        top.shows("device: all")
        top.type(f"f{two}\r")
        top.shows(f"filter: {two}")
        wait_for("one session", lambda: top.sessions() == [two])
        top.type("f\x7f\x7f\x7f\r")
        top.shows("filter: -")
        top.type("p")
        top.shows("PAUSED")
        for job in (first, second):
            job.tell()
            job.finish()
        wait_for("their end", lambda: not daemon.sessions())
        assert len(top.sessions()) == 2, "what is shown is held"
        top.type("p")
        top.shows("sessions: 0 of 0")


def test_a_kill_needs_a_reason(daemon: Daemon) -> None:
    with Program(JOB, daemon.endpoint) as job, Terminal(daemon) as top:
        job.line()
        sid = daemon.sessions()[0]["id"]
        top.shows("RUNNING")
        top.type("k")
        top.shows(f"end {sid}? The reason")
        top.type("\r")
        top.shows("a reason is needed")
        top.type("kno\x1b")
        top.shows("q quit")
        assert [s["state"] for s in daemon.sessions()] == ["RUNNING"]
        top.type("kfor the test\r")
        top.shows(f"ended {sid}")
        cause = daemon.ctl_json("session", "show", sid)["end_cause"]
        assert cause == f"killed by uid {os.getuid()}: for the test"


def test_readonly_ends_nothing(daemon: Daemon) -> None:
    with Program(JOB, daemon.endpoint) as job, Terminal(daemon, "--readonly") as top:
        job.line()
        top.shows("read only")
        top.shows("RUNNING")
        top.type("k")
        top.shows("--readonly: nothing can be ended here")
        assert [s["state"] for s in daemon.sessions()] == ["RUNNING"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_sees_all_and_ends_only_its_own(daemon: Daemon) -> None:
    os.chmod(daemon.socket, 0o666)
    for folder in daemon.socket.parents:
        if str(folder).startswith("/tmp/"):
            os.chmod(folder, folder.stat().st_mode | 0o005)
    with tempfile.TemporaryDirectory() as folder, Program(JOB, daemon.endpoint) as job:
        os.chmod(folder, 0o755)
        job.line()
        sid = daemon.sessions()[0]["id"]
        program = shutil.copy(FLAGOSCTL, folder)
        with Terminal(daemon, program=program, user=65534, group=65534, extra_groups=[], cwd="/") as top:
            top.shows("RUNNING")
            top.type("kI may not\r")
            top.shows(f"session {sid} is another user's: its owner or root may end it")
        assert [s["state"] for s in daemon.sessions()] == ["RUNNING"]


def test_a_daemon_that_goes_and_comes(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(vendor="null")
    with Terminal(daemon) as top:
        top.shows("sessions: 0 of 0")
        daemon.stop()
        top.shows("cannot reach flagosd")
        daemon.start_again()
        wait_for("the end of the message", lambda: "cannot reach" not in (top.type("x"), top.lines()[-1])[1])
        top.type("q")
        assert top.process.wait(10) == 0


def test_a_small_terminal(daemon: Daemon) -> None:
    with Terminal(daemon) as top:
        top.shows("sessions: 0 of 0")
        top._resize(3, 20)
        top.screen.resize(3, 20)
        wait_for("a redraw", lambda: top.lines()[-1].startswith("s sort  r reverse"))
        top.type("q")
        assert top.process.wait(10) == 0


def test_an_unknown_terminal_is_an_error(daemon: Daemon) -> None:
    master, slave = pty.openpty()
    done = subprocess.run(
        [FLAGOSCTL, "--socket", daemon.socket, "top"], stdin=slave, stdout=slave, stderr=subprocess.PIPE,
        env=environment(TERM="nosuch"), text=True, timeout=30, check=False,
    )  # fmt: skip
    os.close(master)
    os.close(slave)
    assert done.returncode == 6
    assert "--once" in done.stderr


def test_without_a_terminal_it_is_text(daemon: Daemon) -> None:
    with Program(JOB, daemon.endpoint) as job:
        job.line()
        (session,) = daemon.sessions()
        for command in (["top"], ["session", "top", "--once"]):
            done = daemon.ctl(*command)
            assert done.returncode == 0, done.stderr
            assert "\x1b" not in done.stdout
            title, devices, _, empty, sessions, row = done.stdout.splitlines()
            assert title.startswith("flagosd ")
            assert devices.startswith("DEV")
            assert empty == ""
            assert sessions.startswith("SID")
            assert row.split()[0] == session["id"]
        document = json.loads(daemon.ctl("top", "--once", "-o", "json").stdout)
        assert document["kind"] == "Top"
        assert [s["id"] for s in document["sessions"]] == [session["id"]]
        assert document["devices"][0]["sessions"] == 1
        job.tell()
        job.finish()
