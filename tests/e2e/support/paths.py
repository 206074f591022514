# SPDX-License-Identifier: Apache-2.0
"""Where the tested things are."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "python" / "flagos"
BIN = PACKAGE / "native" / "bin"
FLAGOSD = BIN / "flagosd"
FLAGOSCTL = BIN / "flagosctl"
E2E = ROOT / "tests" / "e2e"


def libtorch() -> Path:
    """The folder of this Python's libtorch, found without importing torch."""
    torch = importlib.util.find_spec("torch")
    assert torch is not None
    assert torch.submodule_search_locations
    return Path(torch.submodule_search_locations[0]) / "lib"
