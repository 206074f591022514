# SPDX-License-Identifier: Apache-2.0
"""Loading the client library into PyTorch, once, without ever breaking ``import torch``.

PyTorch calls :func:`autoload` at the end of its own import and raises again whatever it throws. So nothing
is thrown here: a reason not to load is kept, and raised by :func:`require` and by every function of
``torch.flagos``. Nothing here connects to flagosd.
"""

import os
import sys
from pathlib import Path
from threading import RLock

# Not torch: this module is imported in the middle of torch's own import, and before it.

NATIVE = Path(__file__).resolve().parent / "native"
"""What was built: lib/, bin/ and vendors/. In a checkout a link to the build folder."""

LIBRARY = NATIVE / "lib" / "libflagos_client.so"
BUILT_FOR = NATIVE / "lib" / "libflagos_client.torch"
"""The version of the torch that the library was built against, written by the build."""

_lock = RLock()
_tried = False
_failure: Exception | None = None


class RefusalError(Exception):
    """Why the device is not registered: what, why, and what to do."""


def autoload() -> None:
    """Loads the device, or keeps the reason why not. Never raises, never connects; the second call does
    nothing."""
    global _tried, _failure
    try:
        # Outside of the lock: torch's import may be going on in another thread and be about to call this
        # function.
        import torch  # noqa: F401
    except ImportError as error:
        _failure = error
        return
    with _lock:
        if _tried:
            return
        _tried = True
        try:
            _load()
        except Exception as error:
            _failure = error
            _offer_reason(error)


def require() -> None:
    """Loads the device unless it is loaded, and raises RuntimeError where it cannot be.

    Says nothing about flagosd, which is first asked when the device is used.
    """
    autoload()
    if _failure is not None:
        raise RuntimeError(str(_failure)) from _failure


def _load() -> None:
    _check_files()
    _check_torch()
    import torch

    torch.ops.load_library(str(LIBRARY))  # type: ignore[no-untyped-call]
    torch.utils.backend_registration.rename_privateuse1_backend("flagos")
    from flagos import _client, backend, errors

    _client.register()
    errors.install()
    backend.install()


def _check_files() -> None:
    if not LIBRARY.exists() or not BUILT_FOR.exists():
        missing = BUILT_FOR if LIBRARY.exists() else LIBRARY
        raise RefusalError(
            f"device flagos is not available: {missing} is missing, so the package was not built or is "
            "damaged. In a checkout run `make build`; elsewhere reinstall the package: "
            "pip install --force-reinstall flagos"
        )


def _check_torch() -> None:
    """Refuses a torch in which the library must not be loaded. The loader itself cannot be asked: a library
    built for another libtorch may crash the process."""
    import torch

    built_for = BUILT_FOR.read_text(encoding="utf-8").strip()
    # The part after "+" tells builds of one version apart (CPU, CUDA ...): the ABI of libtorch_cpu is the
    # same.
    if _public(built_for) != _public(torch.__version__):
        raise RefusalError(
            f"device flagos is not available: its client library was built for torch {built_for}, and "
            f"this is torch {torch.__version__}. Install that torch (pip install "
            f"torch=={_public(built_for)}) or a flagos built for this one; in a checkout `make build` builds "
            "for the torch of .venv"
        )
    taken = torch._C._get_privateuse1_backend_name()
    if taken not in ("privateuseone", "flagos"):
        raise RefusalError(
            f"device flagos is not available: another package has registered device {taken!r}, and PyTorch "
            "has room for one device from outside. To use flagos in this process, uninstall that package or "
            "turn its loading off"
        )
    other = torch._C._accelerator_getAccelerator()
    if other is not None and other.type != "flagos" and not os.environ.get("FLAGOS_ENDPOINT"):
        raise RefusalError(
            f"device flagos is not registered: this torch has device {other.type!r}, which PyTorch would "
            "then no longer take as its accelerator. To use flagos all the same, set FLAGOS_ENDPOINT "
            "(to `embedded` or unix:///path)"
        )


def _public(version: str) -> str:
    return version.partition("+")[0]


def _offer_reason(error: Exception) -> None:
    """Makes torch.flagos raise `error`, so that who asks for the device learns it. Does nothing where even
    that fails."""
    torch = sys.modules.get("torch")
    if torch is None or hasattr(torch, "flagos"):
        return
    try:
        from flagos._unavailable import Unavailable

        module = Unavailable(str(error))
        torch.flagos = module  # type: ignore[attr-defined]
        sys.modules["torch.flagos"] = module
    except Exception as second:  # a broken installation must not break `import torch`
        error.add_note(f"(and torch.flagos could not be made: {second})")
