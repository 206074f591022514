# SPDX-License-Identifier: Apache-2.0
"""Device ``flagos`` for PyTorch: accelerators that another process owns.

A bare ``import torch`` is enough: it loads this package, and ``torch.ones(2, device="flagos")`` attaches to
flagosd. Import it by name for what PyTorch has no place for:

* :func:`require` loads the device now and raises what stands in the way of using it;
* :class:`DeviceLostError` is what every call raises once the process that computes is gone.

What the device itself offers (streams, memory figures, random numbers ...) is ``torch.flagos``.

``FLAGOS_ENDPOINT`` says where flagosd is: ``unix:///path/of/its/socket``, or ``embedded`` for one of the
process's own. Unset, it is ``/run/flagos/flagosd.sock`` where that exists, else ``embedded``.
"""

from typing import TYPE_CHECKING

# First of all: `import torch` below calls it by its name in this module, as the entry point that PyTorch
# knows.
from flagos._loader import autoload as _autoload
from flagos._loader import require

if TYPE_CHECKING:
    from flagos.errors import DeviceLostError

    __version__: str

__all__ = ["DeviceLostError", "__version__", "require"]

_autoload()


def __getattr__(name: str) -> object:
    # What costs time to find out is found when it is asked for: `import torch` pays for everything above.
    if name == "DeviceLostError":
        from flagos.errors import DeviceLostError

        return DeviceLostError
    if name == "__version__":
        from importlib.metadata import version

        return version("flagos")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
