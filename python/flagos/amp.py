# SPDX-License-Identifier: Apache-2.0
"""Mixed precision; torch.flagos.amp. ``torch.autocast("flagos")`` and ``torch.amp.GradScaler("flagos")`` do
the same."""

from typing import Any

import torch


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that autocast computes in on the device; the first is the one it takes unless told."""
    return [torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the device computes in bfloat16."""
    from flagos.device import current_device

    return torch.bfloat16 in torch._C._accelerator_getDeviceCapability(current_device())["supported_dtypes"]


class autocast(torch.amp.autocast_mode.autocast):  # noqa: N801  (PyTorch's name)
    """torch.autocast for device flagos."""

    def __init__(
        self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool | None = None
    ) -> None:
        super().__init__("flagos", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler for device flagos."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__("flagos", *args, **options)
