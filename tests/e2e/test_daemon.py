# SPDX-License-Identifier: Apache-2.0
"""flagosd alone: one socket each, hostile bytes, bad configuration, and what flagosctl shows."""

import contextlib
import os
import random
import socket
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.daemon import Daemon
from support.paths import FLAGOSCTL, FLAGOSD, libtorch
from support.program import Program, environment, run
from support.waiting import wait_for

USE = "import torch; assert torch.ones(3, device='flagos').sum().item() == 3"


def start_second(daemon: Daemon, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*daemon.command, *more], capture_output=True, text=True, timeout=30, env=environment(), check=False
    )


def test_two_daemons_on_one_socket(daemon: Daemon) -> None:
    second = start_second(daemon)
    assert second.returncode != 0
    assert f"pid {daemon.pid}" in second.stderr
    assert str(daemon.socket) in second.stderr
    assert "--socket" in second.stderr
    run(USE, daemon.endpoint)


def test_a_daemon_that_was_killed_does_not_block_the_next(daemon: Daemon) -> None:
    daemon.kill()
    assert daemon.socket.exists()
    daemon.start_again()
    run(USE, daemon.endpoint)
    assert daemon.stop() == 0
    assert list(daemon.folder.iterdir()) == [daemon.log]


def request(**changed: bytes | int) -> bytes:
    """An AttachRequest that would open a session, with some fields changed."""
    fields: dict[str, bytes | int] = {
        "magic": b"FLAGOSA1", "size": 256, "min": 1, "max": 1, "features": 1, "kind": 2, "reserved": 0,
        "pid": os.getpid(), "mask": 0, "token": b"", "name": b"hostile", "torch": b"2.13.0",
    } | changed  # fmt: skip
    return struct.pack("<8sIHHQHHIQ32s64s32s88x", *fields.values())


def test_the_request_of_this_test_is_one() -> None:
    assert len(request()) == 256


def send(daemon: Daemon, data: bytes, fds: list[int] | None = None, wait: float = 0.05) -> bytes:
    """What flagosd answers within `wait` seconds, before this side hangs up; it may close while it is sent
    to."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(wait)
        connection.connect(str(daemon.socket))
        answer = b""
        with contextlib.suppress(ConnectionError, TimeoutError):
            if fds:
                socket.send_fds(connection, [data], fds)
            else:
                connection.sendall(data)
            while part := connection.recv(4096):
                answer += part
        return answer


def ask_for_devices(daemon: Daemon) -> bytes:
    """The answer to a good request."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(daemon.socket))
        connection.sendall(request(kind=1))
        return connection.recv(1024)


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "one byte": b"F",
    "half a magic": b"FLAG",
    "the magic alone": b"FLAGOSA1",
    "half a request": request()[:100],
    "another magic": b"FLAGOSA9" + request()[8:],
    "a wrong size": request(size=2**32 - 1),
    "a small size": request(size=8),
    "an old version": request(min=0, max=0),
    "a new version": request(min=7000, max=65535),
    "versions the wrong way round": request(min=9, max=1),
    "an unknown kind": request(kind=77),
    "devices that are not there": request(mask=2**64 - 1),
    "a wrong token": request(token=b"\xff" * 32),
    "texts without end": request(name=b"x" * 64, torch=b"y" * 32),
    "a text of control bytes": request(name=b"\x1b[2J\x07\xff\xfe"),
    "another process's number": request(pid=1),
    "HTTP/2 that goes nowhere": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 500,
    "HTTP/2 cut off": b"PRI ",
    "a lot": os.urandom(1_000_000),
}


@pytest.fixture(scope="module")
def attacked(sockets: Path) -> object:
    daemon = Daemon(sockets / "attacked")
    yield daemon
    assert daemon.alive()
    assert daemon.stop() == 0


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_harm_nobody(attacked: Daemon, name: str) -> None:
    for _ in range(3):
        send(attacked, HOSTILE[name])
    assert attacked.alive()
    assert ask_for_devices(attacked).startswith(b"FLAGOSA1")


def test_random_changes_of_a_good_request_harm_nobody(attacked: Daemon) -> None:
    random.seed(5)
    for _ in range(200):
        data = bytearray(request(kind=1))
        for _ in range(random.randrange(1, 8)):
            data[random.randrange(len(data))] = random.randrange(256)
        send(attacked, bytes(data), wait=0.01)
    assert attacked.alive()
    run(USE, attacked.endpoint)


def test_descriptors_that_nobody_asked_for_are_closed(attacked: Daemon) -> None:
    before = len(os.listdir(f"/proc/{attacked.pid}/fd"))
    with open("/dev/null") as file:
        for _ in range(50):
            send(attacked, request(kind=1), [file.fileno()] * 20, wait=0.01)
    wait_for("no more descriptors", lambda: len(os.listdir(f"/proc/{attacked.pid}/fd")) <= before + 2)


def test_connections_that_say_nothing_hold_nobody_up(attacked: Daemon) -> None:
    with contextlib.ExitStack() as stack:
        for i in range(50):  # of one user; 64 wait at most, and the next is told so (a C++ test holds that)
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(str(attacked.socket))
            connection.sendall(request()[: i % 50])
        run(USE, attacked.endpoint)
        assert attacked.ctl("version").returncode == 0


def test_what_a_version_error_says(attacked: Daemon) -> None:
    message = send(attacked, request(min=7000, max=7001), wait=10).decode(errors="replace")
    assert "7000" in message
    assert "version" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[daemon]\nlisten = 5\n", "listen"),
        ("[session]\nring = 65536\n", "unit"),
        ("[session]\nrnig = '1MiB'\n", "rnig"),
        ("[sesion]\nring = '1MiB'\n", "sesion"),
        ("[session]\nring = '100KiB'\n", "power of two"),
        ("[session\n", "flagosd.toml"),
    ],
)
def test_a_bad_configuration_is_refused_by_name(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "flagosd.toml"
    file.write_text("schema = 1\n" + text)
    done = subprocess.run(
        [FLAGOSD, "--config", file, "--socket", tmp_path / "s", "--libtorch", libtorch()],
        capture_output=True, text=True, timeout=60, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert expected in done.stderr
    assert not (tmp_path / "s").exists()


def test_flagosctl_shows_devices_and_sessions(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(devices=3)
    assert [d["index"] for d in daemon.ctl_json("device", "list")["items"]] == [0, 1, 2]
    assert daemon.sessions() == []
    with Program(
        "import torch; x = torch.ones(2**20, device='flagos:1'); print(x.sum().item(), flush=True); input()",
        daemon.endpoint,
    ) as program:
        assert float(program.line()) == 2**20
        (session,) = daemon.sessions()
        assert int(session["client_pid"]) == program.pid
        assert session["state"] == "RUNNING"
        assert session["vendor"] == "cpu"
        assert int(session["memory_used"]) >= 2**22
        assert int(session["calls"]) >= 2
        table = daemon.ctl("ps")
        assert table.stdout.split()[:2] == ["SID", "OWNER"]
        assert session["id"] in table.stdout
        shown = daemon.ctl("session", "show", session["id"])
        assert f"{program.pid}" in shown.stdout
        program.tell()
        program.finish()
    wait_for("the session's end", lambda: daemon.sessions() == [], timeout=2.0)
    assert daemon.ctl("session", "show", "s999").returncode == 4
    assert daemon.ctl("frobnicate").returncode == 2
    assert daemon.ctl("version").returncode == 0
    assert daemon.ctl("doctor").returncode == 0, daemon.ctl("doctor").stdout


def test_a_vendor_that_does_not_start_is_told_to_clients(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(vendor="nosuch")
    answer = run(
        """
        import torch
        try:
            torch.ones(2, device="flagos")
        except RuntimeError as error:
            print(error)
        """,
        daemon.endpoint,
    )
    assert "nosuch/manifest.toml" in answer
    assert daemon.alive()


def test_flagosctl_without_a_daemon_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [FLAGOSCTL, "--socket", tmp_path / "none.sock", "ps"],
        capture_output=True, text=True, timeout=30, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "none.sock" in done.stderr
    assert len(done.stderr.splitlines()) == 3, "what, why, what to do"


def test_a_lease_limits_the_devices(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(devices=4)
    opened = daemon.ctl_json("lease", "open", "--devices", "1,3")
    token = opened["token"]
    run(
        """
        import torch
        assert torch.flagos.device_count() == 2
        assert torch.ones(2, device="flagos:1").tolist() == [1, 1]
        """,
        daemon.endpoint,
        FLAGOS_TOKEN=token,
    )
    assert daemon.ctl("lease", "close", opened["lease"]).returncode == 0
    code = "import torch; assert not torch.flagos.is_available()"
    run(code, daemon.endpoint, FLAGOS_TOKEN=token)
