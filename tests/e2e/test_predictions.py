# SPDX-License-Identifier: Apache-2.0
"""Results are what the client predicts; FLAGOS_CHECK_PREDICTIONS=1 compares the two at every call."""

from support.program import run

CHECKED = """
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.GELU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(128, 5),
    ).to("flagos")
    optimizer = torch.optim.AdamW(model.parameters())
    for shape in ((2, 3, 8, 8), (4, 3, 8, 8)):
        for memory_format in (torch.contiguous_format, torch.channels_last):
            x = torch.rand(shape, device="flagos").contiguous(memory_format=memory_format)
            torch.nn.functional.cross_entropy(model(x), torch.arange(len(x), device="flagos")).backward()
            optimizer.step()
            optimizer.zero_grad()
    figures = torch.flagos.explain(file=None)
    print(sum(f.calls for f in figures) == sum(sum(f.waits.values()) for f in figures))
"""


def test_a_training_step_is_predicted_rightly() -> None:
    assert run(CHECKED, "embedded", FLAGOS_CHECK_PREDICTIONS="1").strip() == "True", "every call waits"


def test_losses_of_one_element_with_deterministic_algorithms() -> None:
    """PyTorch fills what it resizes then, which once was memory that a prediction does not have."""
    program = """
        import torch
        import torch.nn.functional as F
        torch.use_deterministic_algorithms(True)
        for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.l1_loss):
            for shape in ((), (1,), (3, 2), (0,)):
                for reduction in ("none", "mean", "sum"):
                    a, b = torch.rand(2, *shape)
                    ours, theirs = (loss(a.to(d), b.to(d), reduction=reduction) for d in ("flagos", "cpu"))
                    assert ours.shape == theirs.shape
                    equal = torch.equal(ours.cpu().nan_to_num(7), theirs.nan_to_num(7))
                    assert equal, (loss, shape, reduction)
        """
    for checked in ("0", "1"):
        run(program, "embedded", FLAGOS_CHECK_PREDICTIONS=checked)


def test_no_false_alarms() -> None:
    """Of results that are no tensors, and of sparse operands, which nobody predicts."""
    program = """
        import torch
        x = torch.randn(4, 3, device="flagos", requires_grad=True)
        weight = torch.ones(3, device="flagos")               # wants no gradient: undefined
        torch.nn.functional.layer_norm(x, (3,), weight).sum().backward()
        torch.nn.functional.batch_norm(x, None, None, weight, training=True).sum().backward()
        sparse = torch.eye(3, device="flagos").to_sparse()
        for _ in range(3):
            assert torch.equal(torch.neg(sparse).to_dense().cpu(), -torch.eye(3))
        """
    run(program, "embedded", FLAGOS_CHECK_PREDICTIONS="1")
