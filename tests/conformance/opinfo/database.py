# SPDX-License-Identifier: Apache-2.0
"""PyTorch's OpInfo database: every operator with its sample inputs and its error inputs."""

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

# Every STEP-th operator, and at most SAMPLES samples of each.
STEP = int(os.environ.get("CONFORMANCE_STEP") or 16)
SAMPLES = int(os.environ.get("CONFORMANCE_SAMPLES") or 3)


def name_of(entry: Any) -> str:
    variant = entry.variant_test_name
    return f"{entry.name}.{variant}" if variant else entry.name


@cache
def entries() -> dict[str, Any]:
    """The chosen operators by name. Two entries of one name differ in what they are a reference for."""
    found: dict[str, Any] = {}
    for entry in op_db:
        name = name_of(entry)
        while name in found:
            name += "'"
        found[name] = entry
    return dict(list(found.items())[::STEP])


def samples(entry: Any, dtype: torch.dtype, requires_grad: bool = False) -> Iterator[Any]:
    """Samples on the CPU, the same in every process."""
    torch.manual_seed(0)
    drawn = entry.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    for _, sample in zip(range(SAMPLES), drawn, strict=False):
        yield sample
