# SPDX-License-Identifier: Apache-2.0
"""The interpreter's end, for which autograd's threads must be done.

A thread of autograd's that works for a device lets go of tensors after backward() has returned, and needs
the GIL for those that Python knows. Once Python ends it hands the GIL to no other thread: it ends the one
that asks, in the middle of a destructor, and the process aborts. A backward pass on the CPU has no such
thread.
"""

import atexit
import contextlib
import os

import torch

from flagos import _client

_kept: list[torch.Tensor] = []  # else such a thread might be the one to let go of them


def install() -> None:
    """Once a process."""
    atexit.register(_let_autograd_finish)


def _let_autograd_finish() -> None:
    """Has each device's thread work for something that Python does not know, and so finish all before it."""
    if not _client.is_initialized() or not _autograd_has_threads():
        return
    with contextlib.suppress(Exception), torch.enable_grad():  # a lost device is told elsewhere
        for index in range(_client.device_count()):
            leaf = torch.empty((), device=torch.device("flagos", index), requires_grad=True)
            root = leaf.view(())
            _kept.extend((leaf, root))
            torch.ops.aten._backward(root, [leaf])  # releases the GIL, and makes the first gradient in C++


def _autograd_has_threads() -> bool:
    """Whether there was a backward pass on any device."""
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/comm") as name:
                if name.read().startswith("pt_autograd_"):
                    return True
    return False
