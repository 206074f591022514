# SPDX-License-Identifier: Apache-2.0
"""Random numbers of the devices; part of torch.flagos.

Each device of a session has one default generator, whose draws are ordered with everything else that is
issued. With one seed it draws what the same vendor draws in process: the CPU vendor what PyTorch draws on
the CPU.
"""

from collections.abc import Iterator, Sequence
from typing import overload

import torch

from flagos import _client
from flagos.device import Device, _check_index, _get_device_index

# A seed set before the process's first use of the device: torch.manual_seed() must not ask flagosd for
# anything.
_pending_seed: int | None = None
_used = False


class DefaultGenerators(Sequence[torch.Generator]):
    """The devices' default generators, by index; as long as there are devices."""

    def __len__(self) -> int:
        return _client.device_count()

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[torch.Generator, ...]: ...
    def __getitem__(self, index: int | slice) -> torch.Generator | tuple[torch.Generator, ...]:
        apply_pending_seed()  # or it would come after what the caller does with the generator
        chosen = range(len(self))[index]  # negative ones, slices, IndexError
        if isinstance(chosen, range):
            return tuple(_client.default_generator(i) for i in chosen)
        return _client.default_generator(chosen)

    def __iter__(self) -> Iterator[torch.Generator]:
        apply_pending_seed()
        return (_client.default_generator(i) for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<default generators of {len(self)} devices of flagos>"


default_generators = DefaultGenerators()


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator. torch.manual_seed() seeds those of all devices, and the CPU's."""
    _generator(None).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds every device's generator; in a process that has not used the device, at its first use."""
    global _pending_seed
    if not _used and not _client.is_initialized():
        _pending_seed = seed
        return
    _pending_seed = None
    for generator in default_generators:
        generator.manual_seed(seed)


def seed() -> int:
    """Seeds the current device's generator with a number from the system, and returns that."""
    return _generator(None).seed()


def seed_all() -> int:
    """Seeds every device's generator with one number from the system, and returns that."""
    number = torch.Generator().seed()
    manual_seed_all(number)
    return number


def initial_seed() -> int:
    """The number that the current device's generator was seeded with."""
    return _generator(None).initial_seed()


def get_rng_state(device: Device = "flagos") -> torch.Tensor:
    """The state of a device's generator: a tensor of bytes on the CPU, in the vendor's own format."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """get_rng_state() of every device."""
    return [generator.get_state() for generator in default_generators]


def set_rng_state(new_state: torch.Tensor, device: Device = "flagos") -> None:
    """Takes what get_rng_state() gave; RuntimeError for a state of another vendor or of another size."""
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states: Sequence[torch.Tensor]) -> None:
    """set_rng_state() of every device; ValueError unless there is one state for each."""
    for generator, state in zip(default_generators, new_states, strict=True):
        generator.set_state(state)


def apply_pending_seed() -> None:
    """Seeds with what was set before the process's first use of the device. Before anything can draw."""
    global _used, _pending_seed
    _used = True
    if _pending_seed is not None:
        number, _pending_seed = _pending_seed, None
        manual_seed_all(number)


def _generator(device: Device) -> torch.Generator:
    apply_pending_seed()
    return _client.default_generator(_check_index(_get_device_index(device, optional=True)))
