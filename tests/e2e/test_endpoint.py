# SPDX-License-Identifier: Apache-2.0
"""Each form of FLAGOS_ENDPOINT that is accepted, and what each wrong one says."""

import contextlib
import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.daemon import Daemon
from support.program import ask, run

USE = """
    import json, time, torch
    began = time.monotonic()
    available = torch.flagos.is_available()
    try:
        torch.ones(2, device="flagos").tolist()
        error = None
    except Exception as caught:
        error = [type(caught).__name__, str(caught)]
    print(json.dumps({"available": available, "error": error, "seconds": time.monotonic() - began,
                      "info": torch.flagos.session_info()}))
    """


@pytest.mark.parametrize("endpoint", [None, "", "embedded"])
def test_embedded(endpoint: str | None) -> None:
    if endpoint != "embedded" and os.path.exists("/run/flagos/flagosd.sock"):
        pytest.skip("a system flagosd runs here, which an unset endpoint means")
    answer = ask(USE, endpoint)
    assert answer["error"] is None
    assert answer["available"]
    assert answer["info"]["endpoint"] == "embedded"
    assert answer["info"]["vendor"] == "cpu"


def test_an_embedded_one_says_nothing_to_the_jobs_service_manager(sockets: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(sockets / "manager"))
        run(USE, "embedded", NOTIFY_SOCKET=str(sockets / "manager"))
        with pytest.raises(BlockingIOError):
            manager.recv(100, socket.MSG_DONTWAIT)
    (sockets / "manager").unlink()


def test_a_socket(daemon: Daemon) -> None:
    answer = ask(USE, daemon.endpoint)
    assert answer["error"] is None
    assert answer["info"]["endpoint"] == daemon.endpoint


def ask_each(settings: list[dict[str, str]]) -> list[Any]:
    """What USE says under each of some settings, in forked children of one process that has not used the
    device."""
    lines = run(
        [
            f"""
            import os, sys, torch
            for setting in {settings!r}:
                child = os.fork()
                if child == 0:
                    os.environ.update(setting)
                    break
                assert os.waitpid(child, 0)[1] == 0
            else:
                sys.exit()
            """,
            USE,
        ]
    ).splitlines()
    assert len(lines) == len(settings)
    return [json.loads(line) for line in lines]


def test_anything_else_is_refused_with_what_is_accepted() -> None:
    endpoints = [
        "tcp://host:1",
        "unix:relative.sock",
        "unix://",
        "unix://relative",
        "/run/flagosd.sock",
        "Embedded",
        " ",
    ]
    for endpoint, answer in zip(
        endpoints, ask_each([{"FLAGOS_ENDPOINT": e} for e in endpoints]), strict=True
    ):
        assert not answer["available"]
        message = answer["error"][1]
        assert f"FLAGOS_ENDPOINT='{endpoint}'" in message
        for accepted in ("unset", "/run/flagos/flagosd.sock", "unix:///path", "embedded"):
            assert accepted in message


def test_what_goes_with_the_endpoint_is_checked() -> None:
    cases = [
        ("FLAGOS_DEVICES", "0", "1 to 64"),
        ("FLAGOS_DEVICES", "65", "1 to 64"),
        ("FLAGOS_DEVICES", "two", "1 to 64"),
        ("FLAGOS_VENDOR", "../cpu", "vendor's name"),
        ("FLAGOS_TOKEN", "abc", "64 hexadecimal digits"),
    ]
    answers = ask_each([{"FLAGOS_ENDPOINT": "embedded", variable: value} for variable, value, _ in cases])
    for (variable, _, accepted), answer in zip(cases, answers, strict=True):
        assert not answer["available"]
        assert variable in answer["error"][1]
        assert accepted in answer["error"][1]


def test_a_vendor_that_is_not_there_is_named() -> None:
    answer = ask(USE, "embedded", FLAGOS_VENDOR="nosuch")
    assert answer["error"][0] == "RuntimeError"
    assert "nosuch" in answer["error"][1]


def test_a_token_that_opens_no_lease_is_refused(daemon: Daemon) -> None:
    answer = ask(USE, daemon.endpoint, FLAGOS_TOKEN="0123456789abcdef" * 4)
    assert answer["error"] is not None
    assert "lease" in answer["error"][1]
    assert daemon.sessions() == []


@contextlib.contextmanager
def listener(path: Path, answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Something at a socket that is no flagosd."""
    held: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    held.append(connection)
                    answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"unix://{path}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for connection in held:
                connection.close()


def test_nobody_listens_at_the_socket(sockets: Path) -> None:
    path = sockets / "dead.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    answer = ask(USE, f"unix://{path}")
    assert str(path) in answer["error"][1]
    assert "start flagosd again" in answer["error"][1]


def test_something_else_answers(sockets: Path) -> None:
    with listener(
        sockets / "other.sock", lambda c: c.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 100)
    ) as endpoint:
        answer = ask(USE, endpoint)
    assert not answer["available"]
    assert endpoint in answer["error"][1]
    with listener(sockets / "shut.sock", lambda c: c.close()) as endpoint:
        answer = ask(USE, endpoint)
    assert re.search("closed the connection|Connection reset by peer|Broken pipe", answer["error"][1])


def test_nobody_answers(sockets: Path) -> None:
    with listener(sockets / "mute.sock", lambda c: None) as endpoint:
        answer = ask(USE, endpoint)
    assert not answer["available"]
    assert answer["seconds"] < 10, "asking has a deadline"
    assert "did not answer" in answer["error"][1]


def test_a_path_that_is_no_socket_says_so(sockets: Path) -> None:
    (sockets / "file").write_text("")
    assert "that is no socket" in ask(USE, f"unix://{sockets}/file")["error"][1]


def test_a_path_too_long_says_so() -> None:
    answer = ask(USE, "unix:///" + "x" * 200)
    assert "longer than the 107 bytes" in answer["error"][1]
