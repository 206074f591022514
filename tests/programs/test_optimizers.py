# SPDX-License-Identifier: Apache-2.0
"""Every optimizer of torch.optim, in every configuration that PyTorch tests, leaves the CPU's parameters."""

from typing import Any

import pytest
import torch
from agreement import agrees
from torch.testing._internal.common_optimizers import OptimizerInfo, optim_db
from torch.utils._pytree import tree_leaves

STEPS = 4
SHAPES = [(5, 3), (3,), (), (2, 4, 3, 3)]


def parameters(info: OptimizerInfo, device: str) -> list[torch.Tensor]:
    """Of several shapes, one channels-last, one transposed. Muon takes matrices, LBFGS contiguous tensors."""
    generator = torch.Generator().manual_seed(5)
    drawn = [torch.randn(shape, generator=generator) for shape in SHAPES]
    drawn[0] = drawn[0].t()
    drawn[3] = drawn[3].contiguous(memory_format=torch.channels_last)
    if info.name in ("Muon", "SparseAdam"):
        drawn = [drawn[0], torch.randn(4, 6, generator=generator)]
    if info.name == "LBFGS":
        drawn = [tensor.contiguous() for tensor in drawn]
    return [tensor.to(device).requires_grad_() for tensor in drawn]


def set_gradients(info: OptimizerInfo, params: list[torch.Tensor], step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for param in params:
        gradient = torch.randn(param.shape, generator=generator)
        if info.only_supports_sparse_grads:
            gradient = (gradient * (gradient > 0)).to_sparse()
        param.grad = gradient.to(param.device)


def distance(params: list[torch.Tensor]) -> torch.Tensor:
    """A loss with a minimum, for optimizers that ask for it again and again."""
    return torch.stack([(param - 0.3).pow(4).sum() for param in params]).sum()


def train(info: OptimizerInfo, options: dict[str, Any], device: str) -> list[Any]:
    params = parameters(info, device)
    optimizer = info.optim_cls(params, **options)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = distance(params)
        loss.backward()
        return loss

    for step in range(STEPS):
        if info.step_requires_closure:
            optimizer.step(closure)
        else:
            set_gradients(info, params, step)
            optimizer.step()
    # Counters of steps lie on the CPU but in fused optimizers.
    state = tree_leaves(optimizer.state_dict()["state"])
    return params + [leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf for leaf in state]


CASES = [
    pytest.param(info, implementation, id=f"{info.name}-{implementation or 'only'}")
    for info in optim_db
    for implementation in [
        *(["loop", "foreach"] if "foreach" in info.supported_impls else [None]),
        *(["fused"] if "fused" in info.supported_impls else []),
    ]
]
FLAGS: dict[str | None, dict[str, bool]] = {
    None: {},
    "loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


@pytest.mark.parametrize(("info", "implementation"), CASES)
def test_leaves_the_cpus_parameters(info: OptimizerInfo, implementation: str | None) -> None:
    for configuration in info.optim_inputs_func("cpu"):
        options = configuration.kwargs | FLAGS[implementation]
        if implementation == "foreach" and isinstance(options.get("lr"), torch.Tensor):
            continue  # refused by PyTorch where it is not captured in a graph
        try:
            agrees(lambda device: train(info, options, device), times=1)  # noqa: B023
        except Exception as error:
            error.add_note(f"configured as {configuration.desc}: {options}")
            raise


def test_no_optimizer_is_left_out() -> None:
    classes = {
        value
        for value in vars(torch.optim).values()
        if isinstance(value, type) and issubclass(value, torch.optim.Optimizer)
    }
    assert classes - {torch.optim.Optimizer} == {info.optim_cls for info in optim_db}
