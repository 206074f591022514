# SPDX-License-Identifier: Apache-2.0
"""Waiting for what another process does, always with a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(what: str, get: Callable[[], T], timeout: float = 10.0) -> T:
    """The first true value of `get()`; fails with `what` when `timeout` seconds passed without one."""
    deadline = time.monotonic() + timeout
    while True:
        value = get()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s in vain for: {what} (last: {value!r})")
        time.sleep(0.02)
