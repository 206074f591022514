# SPDX-License-Identifier: Apache-2.0
"""The console scripts: each becomes the native program of its name, which lies in the package flagos.

A package of its own, because importing flagos imports torch, and flagosctl is not to wait for that.
"""

import os
import sys
from pathlib import Path
from typing import NoReturn

_BIN = Path(__file__).resolve().parent.parent / "flagos" / "native" / "bin"


def _become(name: str) -> NoReturn:
    program = _BIN / name
    try:
        os.execv(program, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(
            f"{name}: cannot run {program}: {error.strerror}; in a checkout `make build` builds it, "
            "elsewhere reinstall the package: pip install --force-reinstall flagos"
        )


def flagosd() -> NoReturn:
    _become("flagosd")


def flagosctl() -> NoReturn:
    _become("flagosctl")
