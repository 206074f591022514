# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's Python code chooses by the name of a device it knows, chosen by what the vendor's device is.

Only the chunked linear_cross_entropy does so in torch 2.13: in 16-bit types it accumulates in float32 on
devices known to be able to, and in the input's type elsewhere.
"""

from typing import Any

import torch

from flagos import _client


def _known_device(device: torch.device | None) -> torch.device | None:
    """The device that PyTorch knows for a device of ours; the same device where there is none."""
    if device is not None and device.type == "flagos" and _client.session_info().get("vendor") == "cpu":
        return torch.device("cpu")
    return device


def install() -> None:
    """Makes PyTorch ask. Once a process; does nothing with a torch that has not got what it is about."""
    try:
        from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions
    except ImportError:
        return
    adjust: Any = LinearCrossEntropyOptions._adjust

    def _adjust(self: Any, *args: Any, device: torch.device | None = None, **options: Any) -> Any:
        return adjust(self, *args, device=_known_device(device), **options)

    LinearCrossEntropyOptions._adjust = _adjust  # type: ignore[method-assign]
