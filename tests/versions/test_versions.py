# SPDX-License-Identifier: Apache-2.0
"""Two versions of PyTorch work together, by names and schemas of operators; an error names what one lacks."""

import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

DEVICE = "flagos"
STEP = 12


def test_both_versions_are_told() -> None:
    info = torch.flagos.session_info()
    assert info["client_torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert info["executor_torch"].split("+")[0] != torch.__version__.split("+")[0]


def train(device: str) -> list[float]:
    torch.manual_seed(0)
    head = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8 * 8 * 8, 10))
    body = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.GELU())
    net = torch.nn.Sequential(body, head).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    x = torch.randn(16, 3, 8, 8, generator=torch.Generator().manual_seed(1)).to(device)
    y = torch.arange(16).remainder(10).to(device)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_agrees_with_the_cpu() -> None:
    assert_close(train(DEVICE), train("cpu"), rtol=1e-4, atol=1e-4)


def test_attention_agrees_with_the_cpu() -> None:
    def attend(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        query, key, value = (torch.randn(2, 4, 32, 16).to(device).requires_grad_() for _ in range(3))
        F.scaled_dot_product_attention(query, key, value, is_causal=True).square().sum().backward()
        assert query.grad is not None
        return query.grad.cpu()

    assert_close(attend(DEVICE), attend("cpu"), rtol=1e-4, atol=1e-5)


def test_random_numbers_are_those_of_the_cpu() -> None:
    def draw(device: str) -> torch.Tensor:
        torch.manual_seed(5)
        return torch.cat([torch.rand(50, device=device).cpu(), torch.randn(50, device=device).cpu()])

    assert torch.equal(draw(DEVICE), draw("cpu"))


def test_an_operator_that_only_this_version_has_is_named() -> None:
    image = torch.ones(1, 1, 8, 8, device=DEVICE)
    with pytest.raises(
        NotImplementedError, match=r"_upsample_lanczos2d_aa.*no such operator.*FLAGOS_CPU_FALLBACK"
    ):
        torch.ops.aten._upsample_lanczos2d_aa(image, [4, 4], False)
    # Where PyTorch can do without it, it does.
    assert torch.equal(torch._foreach_clone([image])[0].cpu(), image.cpu())


RANDOM = "rand|dropout|bernoulli|multinomial|normal|exponential|cauchy|geometric|uniform|empty|rrelu|lowrank"
UNIQUE_UP_TO_SIGN = re.compile("svd|eig|qr|lobpcg|ormqr|householder")


def entries() -> list[Any]:
    unfit = re.compile(f"{RANDOM}|jiterator")  # which is CUDA's alone
    return [op for op in op_db[::STEP] if torch.float32 in op.dtypes and not unfit.search(op.name)]


@pytest.mark.parametrize("entry", [pytest.param(op, id=op.formatted_name) for op in entries()])
def test_operators_agree_or_are_named_as_missing(entry: Any) -> None:
    def moved(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to(DEVICE)
        return torch.device(DEVICE) if value in ("cpu", torch.device("cpu")) else value

    for sample in list(entry.sample_inputs("cpu", torch.float32))[:3]:
        value, args, kwargs = tree_map(moved, (sample.input, sample.args, sample.kwargs))
        expected = entry(sample.input, *sample.args, **sample.kwargs)
        try:
            got = entry(value, *args, **kwargs)
        except NotImplementedError as error:
            assert "aten::" in str(error)  # noqa: PT017 (that it raises is no failure)
            return
        got = tree_map(lambda t: t.cpu() if isinstance(t, torch.Tensor) else t, got)
        if not UNIQUE_UP_TO_SIGN.search(entry.name):
            assert_close(got, expected, rtol=1e-4, atol=1e-4, equal_nan=True, check_stride=False)
