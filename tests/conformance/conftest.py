# SPDX-License-Identifier: Apache-2.0
"""Runs each check for every operator of PyTorch's OpInfo database and data type; prints what share agrees.

A check is a module test_CHECK.py whose test takes `entry` and `dtype` and which lists its DTYPES.
"""

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

# Kernels that share work out among threads round differently.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["FLAGOS_ENDPOINT"] = "embedded"
os.environ["FLAGOS_DEVICES"] = "2"
os.environ["PYTORCH_TEST_WITH_SLOW"] = "0"

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

from opinfo.database import entries
from opinfo.exclusions import reason

torch.set_num_threads(1)
torch.set_warn_always(True)  # a warning once would be the CPU's alone


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    check = metafunc.module.__name__.removeprefix("test_")
    cases = []
    for name, entry in entries().items():
        for dtype in metafunc.module.DTYPES:
            if not metafunc.module.applies(entry, dtype):
                continue
            label = str(dtype).removeprefix("torch.")
            why = reason(check, name, label)
            marks = [pytest.mark.xfail(reason=why, strict=True)] if why else []
            cases.append(pytest.param(entry, dtype, id=f"{name}-{label}", marks=marks))
    metafunc.parametrize(("entry", "dtype"), cases)


@pytest.fixture(autouse=True)
def _fresh_state() -> Iterator[None]:
    """An operator that leaves an error for later or changes a global setting disturbs no other case."""
    yield
    torch.set_default_dtype(torch.float32)
    torch.flagos.synchronize()


_counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "conformance" in report.nodeid and (report.when == "call" or report.outcome == "failed"):
        check = Path(report.nodeid.split("::")[0]).stem.removeprefix("test_")
        dtype = report.nodeid.rsplit("-", 1)[-1].removesuffix("]")
        _counts[check, dtype]["passed" if report.outcome == "passed" else "failed"] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _counts:
        return
    terminalreporter.section("agreement with the CPU (excluded cases count as not agreeing)")
    for (check, dtype), count in sorted(_counts.items()):
        total = count.total()
        share = 100 * count["passed"] / total
        terminalreporter.write_line(f"{check:16} {dtype:10} {count['passed']:4} of {total:4} {share:6.1f} %")
