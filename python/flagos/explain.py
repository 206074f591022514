# SPDX-License-Identifier: Apache-2.0
"""What the process asked of the device, operator by operator; torch.flagos.explain()."""

import sys
from typing import NamedTuple, TextIO

from flagos import _client


class OperatorFigures(NamedTuple):
    """One operator since the process attached, or since reset_explain()."""

    name: str  #: "aten::add.Tensor"
    calls: int  #: that were sent to the executor
    waits: dict[str, int]  #: of them, those that waited for their answer, by cause
    fallbacks: int  #: calls that ran on the client's CPU (FLAGOS_CPU_FALLBACK=1)
    bytes_to_device: int  #: of host tensors that the calls read
    bytes_to_host: int  #: of host tensors that the calls wrote
    #: the calls by what ran them: a kernel library, also one that was chosen and ran none, and "native" for
    #: the vendor's own kernels. Counted by the executor; empty where it cannot be asked any more
    libraries: dict[str, int]


def explain(file: TextIO | None = sys.stderr) -> list[OperatorFigures]:
    """Returns what was called, most calls first, and prints it to `file` as a table (None: prints nothing).

    A call that waits keeps the process from issuing ahead: in a steady training step only what the program
    itself asks for (``.item()``, ``.cpu()``) should. Waits of ``synchronize()`` are no operators' and do not
    appear. Asks the executor which kernel library ran the calls, and so waits for those issued before.
    Attaches to nothing: without a session the list is empty.
    """
    figures = sorted(_client.operator_figures(), key=lambda figure: (-figure.calls, figure.name))
    if file is not None:
        print(_table(figures), file=file)
    return figures


def reset_explain() -> None:
    """Begins to count anew, for the figures of a part of the program."""
    _client.reset_operator_figures()


def _table(figures: list[OperatorFigures]) -> str:
    titles = ("operator", "calls", "waited", "on CPU", "to device", "to host", "library", "why it waited")
    rows: list[tuple[str, ...]] = [titles]
    for one in figures:
        waited = sum(one.waits.values())
        why = ", ".join(f"{cause} {count}" for cause, count in one.waits.items() if count)
        numbers = (one.calls, waited, one.fallbacks, one.bytes_to_device, one.bytes_to_host)
        rows.append((one.name, *(str(number) for number in numbers), _libraries(one), why))
    widths = [max(len(row[column]) for row in rows) for column in range(7)]
    lines = []
    for name, *cells, library, why in rows:
        columns = [cell.rjust(width) for cell, width in zip(cells, widths[1:6], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *columns, library.ljust(widths[6]), why]).rstrip())
    return "\n".join(lines)


def _libraries(one: OperatorFigures) -> str:
    if len(one.libraries) == 1 and one.calls:
        return next(iter(one.libraries))
    return ", ".join(f"{library} {count}" for library, count in one.libraries.items())
