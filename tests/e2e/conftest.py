# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests: real flagosd, real executors, this process as a real client.

This process attaches once, to a flagosd with four devices that lives as long as the tests; most tests use
that. What needs a process or a flagosd of its own starts one.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from support import leaks
from support.daemon import Daemon
from support.paths import FLAGOSCTL, FLAGOSD
from support.waiting import wait_for

DEVICES = 4

leaks.mark_descendants()
# A shell that starts the tests in the background has them, and the programs that they interrupt, ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
for name in list(os.environ):
    if name.startswith("FLAGOS") and name != leaks.MARK:
        del os.environ[name]


@pytest.fixture(scope="session")
def sockets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short name: the path of a unix socket has little room."""
    return tmp_path_factory.mktemp("d")


@pytest.fixture(scope="session", autouse=True)
def shared_daemon(sockets: Path) -> Iterator[Daemon]:
    """The flagosd that this process is attached to, with DEVICES devices."""
    missing = [str(program) for program in (FLAGOSD, FLAGOSCTL) if not program.exists()]
    if missing:
        pytest.exit(f"{', '.join(missing)} missing: run `make build` first", returncode=2)
    daemon = Daemon(sockets / "shared", devices=DEVICES)
    try:
        os.environ["FLAGOS_ENDPOINT"] = daemon.endpoint
        try:
            import torch

            # As the executors, for kernels that share work out round differently.
            torch.set_num_threads(1)
            torch.flagos.init()
        except RuntimeError as error:
            pytest.exit(f"no test can run: {error}\n{daemon.log.read_text()}", returncode=2)
        yield daemon
    finally:
        daemon.stop()


_numbers = count()


@pytest.fixture
def start_daemon(sockets: Path) -> Iterator[Callable[..., Daemon]]:
    """Starts a flagosd of the test's own, with the arguments of Daemon; it is stopped after the test."""
    started: list[Daemon] = []

    def start(**options: Any) -> Daemon:
        started.append(Daemon(sockets / f"own{next(_numbers)}", **options))
        return started[-1]

    yield start
    for daemon in started:
        if daemon.alive():
            daemon.stop()


@pytest.fixture
def daemon(start_daemon: Callable[..., Daemon]) -> Daemon:
    """A flagosd of the test's own with one device."""
    return start_daemon()


@pytest.fixture(scope="module", autouse=True)
def no_leaks(shared_daemon: Daemon, sockets: Path) -> Iterator[None]:
    """Fails where a module leaves a process, shared memory, a socket or a descriptor behind."""
    warm_executors(shared_daemon)
    before = leaks.Snapshot.take(sockets)
    assert any(name == "flagosd" for _, name in before.processes), "leaks of processes would not be seen"
    yield
    warm_executors(shared_daemon)

    def nothing_leaked() -> bool:
        return not leaks.Snapshot.take(sockets).leaked_since(before)

    try:
        wait_for("everything gone", nothing_leaked, timeout=5.0)
    except AssertionError:
        pytest.fail(f"left behind: {leaks.Snapshot.take(sockets).leaked_since(before)}")


def warm_executors(daemon: Daemon) -> None:
    """Waits until flagosd holds one executor ready besides the one of this process, and no other lives."""

    def steady() -> bool:
        return sum(name.startswith("flagos-ex") for name in leaks.processes().values()) == 2

    wait_for("one executor of this process and a warm one", steady, timeout=30.0)
