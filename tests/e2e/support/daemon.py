# SPDX-License-Identifier: Apache-2.0
"""A flagosd of the tests' own."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from support.paths import FLAGOSCTL, FLAGOSD, libtorch
from support.program import environment
from support.waiting import wait_for


class Daemon:
    """Starts in a folder of its own and accepts clients once constructed. `config` is TOML text, which says
    how many executors are `warm` where that is None."""

    def __init__(
        self,
        folder: Path,
        devices: int = 1,
        vendor: str = "cpu",
        warm: int | None = 1,
        config: str = "",
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.socket = folder / "flagosd.sock"
        self.log = folder / "flagosd.log"
        self.command: list[str] = [str(FLAGOSD), "--socket", str(self.socket), "--vendor", vendor]
        self.command += ["--devices", str(devices), "--libtorch", str(libtorch())]
        if warm is not None:
            self.command += ["--warm", str(warm)]
        if config:
            file = folder / "flagosd.toml"
            file.write_text("schema = 1\n" + config)
            self.command += ["--config", str(file)]
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        ready, writer = os.pipe()
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*self.command, "--ready-fd", str(writer)],
                pass_fds=[writer],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        os.close(writer)
        with os.fdopen(ready, "rb") as end:
            if end.readline() != b"ready\n":
                raise AssertionError(f"flagosd ended with {process.wait(30)}:\n{self.log.read_text()}")
        return process

    @property
    def endpoint(self) -> str:
        return f"unix://{self.socket}"

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def stop(self, timeout: float = 20.0) -> int:
        """Asks it to end; its exit code."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(
                f"flagosd did not stop within {timeout} s:\n{self.log.read_text()}"
            ) from None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        """A new process for the same socket. REQUIRES that the old one ended."""
        assert not self.alive()
        self.process = self._start()

    def ctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs flagosctl against it."""
        command = [str(FLAGOSCTL), "--socket", str(self.socket), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=30, env=environment(), check=False
        )

    def ctl_json(self, *arguments: str) -> Any:
        done = self.ctl(*arguments, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def sessions(self, *options: str) -> list[dict[str, Any]]:
        """Of `flagosctl ps`."""
        items: list[dict[str, Any]] = self.ctl_json("ps", *options)["items"]
        return items

    def session_of(self, client: int) -> dict[str, Any]:
        """The session of a client's process, also after its end."""
        found = [s for s in self.sessions("--all") if int(s["client_pid"]) == client]
        assert len(found) == 1, f"sessions of {client}: {found}"
        return found[0]

    def wait_for_end(self, client: int, timeout: float = 2.0) -> dict[str, Any]:
        """The session of a client once it no longer lives; by default within the time that is promised."""

        def ended() -> dict[str, Any] | None:
            session = self.session_of(client)
            return session if session["state"] in ("ENDED", "FAULTED") else None

        return wait_for(f"the end of the session of {client}", ended, timeout)  # type: ignore[return-value]
