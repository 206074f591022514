# SPDX-License-Identifier: Apache-2.0
"""What is known not to agree, with the reason.

An excluded case runs all the same: one that agrees is an error too.
"""

import tomllib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "exclusions"


@cache
def _read(check: str) -> dict[str, dict[str, object]]:
    path = FOLDER / f"{check}.toml"
    return tomllib.loads(path.read_text()) if path.exists() else {}


def reason(check: str, operator: str, dtype: str) -> str | None:
    """Why this case of this check is excluded; None where it is not."""
    entry = _read(check).get(operator)
    if entry is None or dtype not in entry.get("dtypes", [dtype]):  # type: ignore[operator]
        return None
    return str(entry["reason"])
