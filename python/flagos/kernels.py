# SPDX-License-Identifier: Apache-2.0
"""Kernel libraries: what may run operators in place of the vendor's own kernels.

``FLAGOS_BACKEND_CONFIG=/path`` names a file that says which runs what, a line each: ``sum = accurate``,
``mean.dim = native``, ``include more.conf``. ``FLAGOS_OP_sum=native`` wins over it.
:func:`torch.flagos.explain` tells which library ran what.
"""

from typing import NamedTuple

from flagos import _client


class KernelLibrary(NamedTuple):
    """A library that the executor has found."""

    name: str
    description: str
    operators: tuple[str, ...]  #: "aten::sum.dim_IntList" ...
    error: str  #: why it cannot be used; empty where it can


def kernel_libraries() -> list[KernelLibrary]:
    """The libraries that this session's executor has, besides the vendor's own kernels; attaches."""
    return _client.kernel_libraries()
