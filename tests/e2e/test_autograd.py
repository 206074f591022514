# SPDX-License-Identifier: Apache-2.0
"""Gradients, and training whose every loss is known.

# regressions.md 52, 57, 60, 62, 65; contract.md 7, 31, 32, 33, 34, 38
"""

from collections.abc import Callable

import pytest
import torch
from support.program import run
from support.training import train
from torch import nn
from torch.nn import functional

Function = Callable[..., torch.Tensor]


def check_gradients(function: Function, *shapes: tuple[int, ...]) -> None:
    """Result and gradients in float64 equal those of the CPU."""
    generator = torch.Generator().manual_seed(7)
    host = [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    device = [t.detach().to("flagos").requires_grad_() for t in host]
    results = [function(*tensors) for tensors in (host, device)]
    for result in results:
        weights = torch.arange(result.numel(), dtype=torch.float64).view(result.shape).cos()
        (result * weights.to(result.device)).sum().backward()
    assert results[1].device.type == "flagos"
    assert results[1].grad_fn is not None
    torch.testing.assert_close(results[1].cpu(), results[0], rtol=0, atol=0)
    for one, other in zip(device, host, strict=True):
        assert one.grad is not None
        assert one.grad.device.type == "flagos"
        torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-12, atol=1e-12)


FUNCTIONS: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "matmul": (torch.matmul, [(3, 4, 5), (5, 6)]),
    "matmul of vectors": (torch.matmul, [(5,), (3, 5, 2)]),
    "broadcast matmul": (torch.matmul, [(4, 1, 2, 3), (5, 3, 2)]),
    "linear": (functional.linear, [(4, 5), (3, 5), (3,)]),
    "conv1d": (functional.conv1d, [(2, 3, 9), (4, 3, 3), (4,)]),
    "conv2d": (
        lambda x, w, b: functional.conv2d(x, w, b, stride=2, padding=1),
        [(2, 3, 8, 8), (4, 3, 3, 3), (4,)],
    ),
    "conv2d without bias": (lambda x, w: functional.conv2d(x, w, dilation=2), [(2, 3, 8, 8), (4, 3, 3, 3)]),
    "depthwise": (lambda x, w: functional.conv2d(x, w, groups=6), [(2, 6, 5, 5), (6, 1, 3, 3)]),
    "conv3d": (functional.conv3d, [(1, 2, 4, 5, 6), (3, 2, 2, 2, 2)]),
    "conv_transpose2d": (functional.conv_transpose2d, [(2, 3, 5, 5), (3, 2, 3, 3), (2,)]),
    "max_pool2d": (lambda x: functional.max_pool2d(x, 3, 2, 1, ceil_mode=True), [(2, 3, 8, 8)]),
    "avg_pool2d": (lambda x: functional.avg_pool2d(x, 2, ceil_mode=True), [(2, 3, 7, 7)]),
    "adaptive_avg_pool2d": (lambda x: functional.adaptive_avg_pool2d(x, 3), [(2, 3, 7, 7)]),
    "layer_norm": (lambda x, w, b: functional.layer_norm(x, (64,), w, b), [(52, 7, 64), (64,), (64,)]),
    "group_norm": (lambda x, w, b: functional.group_norm(x, 2, w, b), [(3, 4, 5, 5), (4,), (4,)]),
    "group_norm of channels last": (
        lambda x: functional.group_norm(x.contiguous(memory_format=torch.channels_last), 2),
        [(3, 4, 5, 5)],
    ),
    "batch_norm": (lambda x, w, b: functional.batch_norm(x, None, None, w, b, True), [(6, 3, 4), (3,), (3,)]),
    "softmax": (lambda x: functional.softmax(x, -1), [(4, 9)]),
    "cross_entropy": (
        lambda x: functional.cross_entropy(x, torch.tensor([1, 0, 2, 2], device=x.device)).view(1),
        [(4, 3)],
    ),
    "gelu": (functional.gelu, [(40,)]),
    "gelu by tanh": (lambda x: functional.gelu(x, approximate="tanh"), [(40,)]),
    "activations": (
        lambda x: (
            functional.elu(x)
            + functional.leaky_relu(x)
            + functional.silu(x)
            + functional.softplus(x)
            + functional.hardtanh(x)
            + functional.softshrink(x)
            + functional.mish(x)
        ),
        [(50,)],
    ),
    "prelu": (lambda x, w: functional.prelu(x, w), [(2, 3, 4), (3,)]),
    "attention": (functional.scaled_dot_product_attention, [(2, 4, 6, 8)] * 3),
    "causal attention": (
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 4, 6, 8)] * 3,
    ),
    "attention of one query": (
        functional.scaled_dot_product_attention,
        [(2, 4, 1, 8), (2, 4, 9, 8), (2, 4, 9, 8)],
    ),
    "embedding": (
        lambda w: functional.embedding(torch.tensor([[0, 2], [2, 1]], device=w.device), w),
        [(4, 3)],
    ),
    "gather and scatter": (
        lambda x: (
            torch.zeros_like(x).scatter_add(1, torch.tensor([[0, 0, 1]], device=x.device).expand(2, 3), x)
            + x.gather(1, torch.tensor([[2, 1, 1]], device=x.device).expand(2, 3))
        ),
        [(2, 3)],
    ),
    "cumsum, sort and cat": (lambda x: torch.cat([x.cumsum(0), x.sort(0).values, x.flip(0)]), [(7, 2)]),
    "indexing": (lambda x: x[torch.tensor([0, 2, 0])][:, 1:] * x[1:, 1:][:1], [(3, 4)]),
    "solve": (
        lambda a, b: torch.linalg.solve(a @ a.mT + 2 * torch.eye(4, device=a.device), b),
        [(4, 4), (4, 2)],
    ),
    "interpolate": (lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"), [(1, 2, 4, 4)]),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=1), [(3, 5)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    check_gradients(function, *shapes)
    check_gradients(function, *shapes)  # with every signature known


def test_recurrent_layers() -> None:
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        torch.manual_seed(2)
        host = kind(5, 7, num_layers=2, batch_first=True).double()
        x = torch.randn(3, 4, 5, dtype=torch.float64)
        device = kind(5, 7, num_layers=2, batch_first=True).double()
        device.load_state_dict(host.state_dict())
        device.to("flagos")
        for network, data in ((host, x), (device, x.to("flagos"))):
            network(data)[0].square().sum().backward()
        for one, other in zip(device.parameters(), host.parameters(), strict=True):
            assert one.grad is not None
            torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-10, atol=1e-12)


def test_gradients_of_gradients_and_hooks() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], device="flagos", requires_grad=True)
    (first,) = torch.autograd.grad((x**4).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0, 48.0, 108.0]
    seen: list[list[float]] = []
    x.register_hook(lambda gradient: seen.append(gradient.tolist()))
    (x * 2).sum().backward()
    assert seen == [[2.0, 2.0, 2.0]]
    assert torch.autograd.gradcheck(
        torch.sin, torch.randn(3, dtype=torch.float64, device="flagos", requires_grad=True)
    )
    checkpointed = torch.utils.checkpoint.checkpoint(lambda t: t.sin().exp(), x, use_reentrant=False)
    x.grad = None
    checkpointed.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad.cpu(), (x.cos() * x.sin().exp()).detach().cpu())


def test_in_place_changes_of_what_backward_needs_are_noticed() -> None:
    x = torch.ones(3, device="flagos", requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_training_equals_the_cpus() -> None:
    torch.testing.assert_close(
        torch.tensor(train("flagos", 40)), torch.tensor(train("cpu", 40)), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_optimizers_step_as_on_the_cpu(kind: type[torch.optim.Optimizer], foreach: bool) -> None:
    results = []
    for device in ("cpu", "flagos"):
        torch.manual_seed(5)
        network = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
        data = torch.randn(32, 6)
        network.to(device)
        optimizer = kind(network.parameters(), lr=1e-2, foreach=foreach)  # type: ignore[call-arg]
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
        for _ in range(10):
            optimizer.zero_grad()
            (network(data.to(device)) - 1).square().mean().backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            optimizer.step()
            schedule.step()
        results.append(torch.cat([p.detach().cpu().flatten() for p in network.parameters()]))
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=1e-5)


def test_fused_adamw() -> None:
    results = []
    for device in ("cpu", "flagos"):
        torch.manual_seed(5)
        weight = torch.randn(17, requires_grad=True, device="cpu").detach().to(device).requires_grad_()
        optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
        for _ in range(5):
            optimizer.zero_grad()
            weight.square().sum().backward()
            optimizer.step()
        results.append(weight.detach().cpu())
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=1e-6)


def test_autocast_and_the_gradient_scaler() -> None:
    assert torch.flagos.get_amp_supported_dtype() == [torch.float16, torch.bfloat16]
    a, b = torch.randn(8, 8, device="flagos"), torch.randn(8, 8, device="flagos")
    with torch.autocast("flagos"):
        assert (a @ b).dtype == torch.float16
        assert torch.softmax((a @ b), dim=0).dtype == torch.float32
    with torch.autocast("flagos", dtype=torch.bfloat16):
        product = a @ b
        assert product.dtype == torch.bfloat16
        torch.testing.assert_close(product.cpu(), a.bfloat16().cpu() @ b.bfloat16().cpu())
    with pytest.warns(UserWarning, match="Disabling autocast"), torch.autocast("flagos", dtype=torch.float64):
        assert (a @ b).dtype == torch.float32

    weight = torch.ones(4, device="flagos", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler = torch.amp.GradScaler("flagos", init_scale=8.0, growth_interval=1)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.5] * 4
    assert scaler.get_scale() == 16.0
    optimizer.zero_grad()
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.5] * 4, "a step with an infinite gradient is left out"
    assert scaler.get_scale() == 8.0


@pytest.mark.parametrize("devices", ["1", "3"])
def test_a_backward_of_the_cpu_before_the_first_use_of_the_device(devices: str) -> None:
    # Autograd sizes its queues by its first question for the number of devices.
    run(
        """
        import torch
        x = torch.ones(2, requires_grad=True)
        (x * 3).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
        assert not torch.flagos.is_initialized()
        last = torch.flagos.device_count() - 1
        y = torch.ones(2, device=f"flagos:{last}", requires_grad=True)
        (y * 5).sum().backward()
        assert y.grad.tolist() == [5.0, 5.0] and y.grad.device.index == last
        """,
        "embedded",
        FLAGOS_DEVICES=devices,
    )


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_draws_again_what_it_drew(reentrant: bool) -> None:
    def gradient(checkpointed: bool) -> torch.Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4)).to("flagos")
        x = torch.ones(3, 4, device="flagos", requires_grad=True)
        torch.manual_seed(1)
        y = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=reentrant) if checkpointed else model(x)
        y.pow(2).sum().backward()
        assert x.grad is not None
        return x.grad.cpu()

    assert torch.equal(gradient(True), gradient(False))


def test_an_encoder_serves_padded_sequences() -> None:
    torch.manual_seed(3)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(2, 3, 8)
    padding = torch.tensor([[False, False, True], [False, False, False]])
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=padding)
        got = encoder.to("flagos")(x.to("flagos"), src_key_padding_mask=padding.to("flagos")).cpu()
    # In process the padded places are cut out and filled with zeros again.
    torch.testing.assert_close(got[~padding], expected[~padding], rtol=1e-5, atol=1e-6)
