# SPDX-License-Identifier: Apache-2.0
"""What a step that is repeated costs besides its calls."""

from collections.abc import Callable

import torch

STEPS = 5
NOTHING = {"fallbacks": 0, "waits": 0, "bytes to host": 0, "signatures": 0}


def traffic_of(step: Callable[[], object]) -> dict[str, int]:
    """What STEPS steps caused, once four have made everything known.

    "signatures" are those that were sent: a call whose signature is known is a few dozen bytes.
    """
    for _ in range(4):
        step()
    known = torch.flagos.session_info()["signatures"]
    torch.flagos.reset_explain()
    for _ in range(STEPS):
        step()
    figures = torch.flagos.explain(file=None)
    return {
        "fallbacks": sum(figure.fallbacks for figure in figures),
        "waits": sum(sum(figure.waits.values()) for figure in figures),
        "bytes to host": sum(figure.bytes_to_host for figure in figures),
        "signatures": torch.flagos.session_info()["signatures"] - known,
    }
