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
    """Has each device's thread work for something without bytes, and so finish all before it.

    That needs no executor: also where the device is lost, such a thread may be about to ask for the GIL.
    """
    if not _client.is_initialized() or not _autograd_has_threads():
        return
    with contextlib.suppress(Exception), torch.enable_grad():
        for index in range(_client.device_count()):
            device = torch.device("flagos", index)
            leaf = torch.empty(0, device=device, requires_grad=True)
            root, gradient = leaf.view(0), torch.empty(0, device=device)
            _kept.extend((leaf, root, gradient))
            torch.ops.aten._backward(root, [leaf], gradient)  # releases the GIL


def _autograd_has_threads() -> bool:
    """Whether there was a backward pass on any device."""
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/comm") as name:
                if name.read().startswith("pt_autograd_"):
                    return True
    return False
