# SPDX-License-Identifier: Apache-2.0
"""What tests must not leave behind: processes, shared memory, sockets, descriptors of this process."""

import contextlib
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

MARK = "FLAGOS_TEST_MARK"


def mark_descendants() -> None:
    """Whatever this process starts from now on can be found by processes()."""
    os.environ[MARK] = str(uuid.uuid4())


def processes() -> dict[int, str]:
    """The living descendants of this process, also those whose parent ended: number and name."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it may end while it is looked at
            if int(entry.name) != os.getpid() and mark in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "comm").read_text().strip()
    return found


def exists(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@dataclass(frozen=True)
class Snapshot:
    """Everything that could leak, at one moment."""

    processes: frozenset[tuple[int, str]]
    shared_memory: frozenset[str]
    sockets: frozenset[str]
    descriptors: int

    @staticmethod
    def take(folder: Path) -> "Snapshot":
        """`folder` is where the tests' sockets are."""
        words = (
            line.split(maxsplit=7) for line in Path("/proc/net/unix").read_text(errors="replace").splitlines()
        )
        return Snapshot(
            frozenset(processes().items()),
            # Not Python's semaphores, which any program of the machine may be making just now.
            frozenset(name for name in os.listdir("/dev/shm") if not name.startswith("sem.mp-")),
            frozenset(word[7] for word in words if len(word) == 8 and str(folder) in word[7]),
            len(os.listdir("/proc/self/fd")),
        )

    def leaked_since(self, before: "Snapshot") -> list[str]:
        leaked = [f"process {pid} ({name})" for pid, name in self.processes - before.processes]
        leaked += [f"shared memory /dev/shm/{name}" for name in self.shared_memory - before.shared_memory]
        leaked += [f"socket {path}" for path in self.sockets - before.sockets]
        if self.descriptors > before.descriptors:
            leaked.append(f"{self.descriptors - before.descriptors} descriptors of this process")
        return leaked
