# SPDX-License-Identifier: Apache-2.0
"""The demo runs, shows what it should, and leaves nothing behind, also when it is interrupted."""

import os
import signal
import subprocess
import sys
import time

import pytest
from support.paths import ROOT
from support.program import environment

DEMO = [sys.executable, str(ROOT / "examples" / "demo.py")]


@pytest.mark.timeout(400)
def test_the_demo() -> None:
    done = subprocess.run(
        DEMO, capture_output=True, text=True, timeout=380, env=environment(TERM="dumb"), check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for text in (
        "Handwritten digits: training on device flagos",
        "(wanted: 96 %): good",
        "$ flagosctl ps\n",
        "RUNNING",
        "(allowed: 1e-05): equal",
        "nothing: no process, no shared memory, no socket",
    ):
        assert text in done.stdout
    assert "\x1b" not in done.stdout, "escape sequences on what is no terminal"
    assert done.stderr == ""
    image = (ROOT / "examples" / "output" / "digits.png").read_bytes()
    assert image.startswith(b"\x89PNG")


@pytest.mark.parametrize("after", [1.0, 8.0])
def test_an_interrupted_demo_leaves_nothing_behind(after: float) -> None:
    demo = subprocess.Popen(
        DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), process_group=0
    )
    time.sleep(after)
    os.killpg(demo.pid, signal.SIGINT)  # as the terminal does
    out, err = demo.communicate(timeout=60)
    assert demo.returncode == 130, out + err
    assert "nothing: no process, no shared memory, no socket" in out
