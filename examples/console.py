# SPDX-License-Identifier: Apache-2.0
"""Output of the examples, readable on a terminal, in a log file, and where the terminal can do nothing."""

import os
import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from tqdm import tqdm

LIVELY = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
"""Whether a line can be drawn over."""


def title(text: str) -> None:
    """A heading, with room above."""
    print(f"\n\033[1m{text}\033[0m" if LIVELY else f"\n{text}", flush=True)


def note(text: str) -> None:
    """One line below a heading."""
    print(f"  {text}", flush=True)


def table(rows: Iterable[Iterable[object]]) -> None:
    """Rows in columns as wide as they need; numbers should come as text."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        note("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


class Progress:
    """A bar over `total` steps: drawn in place where the terminal can, else one line each `every` steps."""

    def __init__(self, name: str, total: int, every: int) -> None:
        self._name, self._total, self._every = name, total, every
        self._began = time.monotonic()
        self._done = 0
        self._facts = ""
        self._bar = tqdm(
            total=total, desc=f"  {name}", file=sys.stdout, ncols=100, nrows=20, disable=not LIVELY
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def step(self, facts: str = "") -> None:
        """One step is done; `facts` is shown behind the bar from now on."""
        self._done += 1
        self._facts = facts or self._facts
        self._bar.set_postfix_str(self._facts, refresh=False)
        self._bar.update()
        if not LIVELY and self._done % self._every == 0:
            filled = 30 * self._done // self._total
            bar = "#" * filled + "." * (30 - filled)
            seconds = time.monotonic() - self._began
            note(f"{self._name} [{bar}] {self._done}/{self._total}, {seconds:5.1f} s, {self._facts}")
