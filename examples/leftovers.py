# SPDX-License-Identifier: Apache-2.0
"""What flagosd and its clients could leave behind on a machine: processes, shared memory, sockets."""

import contextlib
import os
import time
import uuid
from pathlib import Path

_MARK = "FLAGOS_LEFTOVERS_MARK"


class Leftovers:
    """Marks what this process starts from now on, whoever its parent may become; find() tells what of it is
    left.

    The mark is a variable of the environment, which every descendant inherits, executors of a flagosd among
    them.
    """

    def __init__(self, folder: Path) -> None:
        """`folder` holds the sockets."""
        self._folder = folder
        self._mark = f"{_MARK}={uuid.uuid4()}".encode()
        os.environ[_MARK] = self._mark.partition(b"=")[2].decode()

    def find(self, timeout: float) -> list[str]:
        """What is left, a line each; empty as soon as nothing is, at the latest after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            left = [*self.processes(), *self._sockets()]
            left += [f"shared memory {name}" for name in self._shared_memory()]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.05)

    def processes(self) -> list[str]:
        """The marked processes that run, as "process 4711 (flagosd)"."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it may end while it is looked at, or be another user's
                if int(process.name) != os.getpid() and self._mark in (process / "environ").read_bytes():
                    found.append(f"process {process.name} ({(process / 'comm').read_text().strip()})")
        return found

    def _sockets(self) -> list[str]:
        words = (
            line.split(maxsplit=7) for line in Path("/proc/net/unix").read_text(errors="replace").splitlines()
        )
        return [f"socket {word[7]}" for word in words if len(word) == 8 and str(self._folder) in word[7]]

    @staticmethod
    def _shared_memory() -> set[str]:
        """Of sessions, still mapped into this process. It has no name in a file system: what only other
        processes map ends with them, and those are listed as processes."""
        maps = Path("/proc/self/maps").read_text().splitlines()
        return {line.split(maxsplit=5)[5] for line in maps if "/memfd:flagos" in line}
