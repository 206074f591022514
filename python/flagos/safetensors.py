# SPDX-License-Identifier: Apache-2.0
"""Package safetensors with device flagos: ``safetensors.torch.load_file(path, device="flagos:1")``.

safetensors knows the names of devices and refuses others, but takes an index and leaves it to PyTorch what
that is. So safe_open(), to which all that loads comes, is given the index. It is done when a program imports
safetensors; nothing of it is imported here.
"""

import functools
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch

from flagos.device import SPELLINGS, _check_index, _get_device_index

_PACKAGE = "safetensors"


def install() -> None:
    """Once a process. Costs every import a comparison of names until safetensors is imported."""
    loaded = sys.modules.get(_PACKAGE)
    if loaded is not None:
        _patch(loaded)
        return
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds safetensors as the others do, and has its loader patch it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _PACKAGE or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)  # or it would find itself
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        spec.loader = _Patching(spec.loader)
        return spec


class _Patching(Loader):
    """A loader that is another one but for what it does once the module has run."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _patch(module)


def _patch(module: Any) -> None:
    original = getattr(module, "safe_open", None)
    if original is None:
        return
    module.safe_open = _with_index(original)
    user = sys.modules.get(f"{_PACKAGE}.torch")
    if user is not None:
        user.__dict__["safe_open"] = module.safe_open


def _with_index(safe_open: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(safe_open, updated=())
    def opened(filename: Any, framework: str, device: Any = "cpu", **options: Any) -> Any:
        return safe_open(filename, framework, device=_index_of(device), **options)

    return opened


def _index_of(device: Any) -> Any:
    """The index of a device of flagos; anything else as it is."""
    kind = device.type if isinstance(device, torch.device) else str(device).partition(":")[0]
    return _check_index(_get_device_index(device, optional=True)) if kind in SPELLINGS else device
