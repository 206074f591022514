# SPDX-License-Identifier: Apache-2.0
"""What torch.flagos is where the device could not be loaded."""

import types
from collections.abc import Callable
from typing import NoReturn


class Unavailable(types.ModuleType):
    """Has the names of torch.flagos; each raises RuntimeError with the reason why there is no device.

    The few that PyTorch and careful programs ask first answer truthfully instead: there is no device.
    """

    def __init__(self, reason: str) -> None:
        super().__init__("torch.flagos", f"Not available: {reason}")
        self._reason = reason
        import torch

        self.OutOfMemoryError = torch.OutOfMemoryError  # `except` wants a class

    def is_available(self) -> bool:
        return False

    def device_count(self) -> int:
        return 0

    def is_initialized(self) -> bool:
        return False

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed(self, seed: int) -> None:
        """Seeds nothing: torch.manual_seed() must go on working."""

    def manual_seed_all(self, seed: int) -> None:
        """Seeds nothing: torch.manual_seed() must go on working."""

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        from flagos import backend

        if name not in backend.__all__:
            raise AttributeError(f"module 'torch.flagos' has no attribute {name!r}")

        def unavailable(*args: object, **kwargs: object) -> NoReturn:
            raise RuntimeError(self._reason)

        unavailable.__name__ = name
        return unavailable
