# SPDX-License-Identifier: Apache-2.0
"""Python programs that the tests run as processes of their own."""

import json
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any, Self, TypeAlias

from support.paths import E2E

Code: TypeAlias = str | list[str]
"""A program, or its parts one after the other; each may be indented as a whole."""


def environment(endpoint: str | None = None, **more: str | None) -> dict[str, str]:
    """This process's environment with FLAGOS_* only as given, and one computing thread; None removes a
    variable."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FLAGOS") or name == "FLAGOS_TEST_MARK"
    }
    env |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(E2E), "PYTHONUNBUFFERED": "1"}
    for name, value in {"FLAGOS_ENDPOINT": endpoint, **more}.items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return env


class Program:
    """A running Python program whose lines of output are read as they come. Leaving the context kills it."""

    def __init__(self, code: Code, endpoint: str | None = None, **env: str | None) -> None:
        parts = [code] if isinstance(code, str) else code
        self._process = subprocess.Popen(
            [sys.executable, "-c", "".join(map(textwrap.dedent, parts))],
            env=environment(endpoint, **env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.errors = ""
        self._readers = [
            threading.Thread(target=self._read_lines),
            threading.Thread(target=self._read_errors),
        ]
        for reader in self._readers:
            reader.start()

    def _read_lines(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self._process.stderr
        self.errors = self._process.stderr.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join(10)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream:
                stream.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def line(self, timeout: float = 60.0) -> str:
        """The next line; fails where the program ended or says nothing for `timeout` seconds."""
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"the program said nothing for {timeout} s") from None
        if line is None:
            code = self._process.wait(timeout)
            self._readers[1].join(timeout)
            raise AssertionError(f"the program ended with {code} instead of going on:\n{self.errors}")
        return line

    def answer(self, timeout: float = 60.0) -> Any:
        """The next line, as JSON."""
        return json.loads(self.line(timeout))

    def tell(self, text: str = "") -> None:
        """A line of input for the program."""
        assert self._process.stdin
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def finish(self, timeout: float = 60.0, code: int = 0) -> str:
        """What is left of the output, once the program has ended; fails where it ended with another code."""
        try:
            got = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the program still ran after {timeout} s") from None
        for reader in self._readers:
            reader.join(timeout)
        lines = list(iter(self._lines.get, None))
        assert got == code, f"the program ended with {got}, not {code}:\n" + "\n".join([*lines, self.errors])
        return "\n".join(lines)


def run(code: Code, endpoint: str | None = None, timeout: float = 60.0, **env: str | None) -> str:
    """What a program prints that must end well."""
    with Program(code, endpoint, **env) as program:
        return program.finish(timeout)


def ask(code: Code, endpoint: str | None = None, timeout: float = 60.0, **env: str | None) -> Any:
    """The same for a program whose last line is JSON."""
    return json.loads(run(code, endpoint, timeout, **env).splitlines()[-1])
