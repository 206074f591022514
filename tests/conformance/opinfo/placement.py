# SPDX-License-Identifier: Apache-2.0
"""Copies of a sample on a device, storage for storage."""

from typing import Any

import torch
from torch.utils._pytree import tree_map

# Not the current device, so that an operator which takes that instead of its operands' shows.
DEVICE = torch.device("flagos", 1)


class Placement:
    """Places trees of values on `device`.

    Tensors of one storage share one there too, with the same offsets and strides; devices that are named
    become `device`.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._storages: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, tree: Any) -> Any:
        return tree_map(self._value, tree)

    def _value(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value) if value.is_cpu else value
        if isinstance(value, torch.device) or value == "cpu":
            return self._device
        return value

    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            if tensor.layout != torch.strided or tensor.is_quantized or type(tensor) is not torch.Tensor:
                placed = tensor.detach().to(self._device, copy=True)
            elif tensor.is_conj():
                placed = self._tensor(tensor.detach().conj()).conj()
            elif tensor.is_neg():
                placed = torch._neg_view(self._tensor(torch._neg_view(tensor.detach())))
            else:
                placed = self._whole(tensor).as_strided(
                    tensor.shape, tensor.stride(), tensor.storage_offset()
                )
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(placed, tensor.requires_grad)
        return placed.requires_grad_(tensor.requires_grad)

    def _whole(self, tensor: torch.Tensor) -> torch.Tensor:
        """A placed one-dimensional tensor of all elements of the storage of `tensor`."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._storages:
            elements = storage.nbytes() // tensor.element_size()
            whole = torch.empty(0, dtype=tensor.dtype).set_(storage, 0, (elements,))
            # The original stays alive: its address is the key.
            self._storages[key] = (tensor.detach(), whole.to(self._device, copy=True))
        placed = self._storages[key][1]
        return placed if placed.dtype == tensor.dtype else placed.view(tensor.dtype)
