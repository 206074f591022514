# SPDX-License-Identifier: Apache-2.0
"""Random numbers: reproducible, seed-sensitive, and what the CPU draws for the same seed.

# regressions.md 32-43; contract.md 19, 20, 21, 22
"""

import copy
import math
import pickle
import warnings
from collections.abc import Callable

import pytest
import torch
from conftest import DEVICES
from support.checks import assert_same
from support.program import run

Draw = Callable[[str], torch.Tensor]

DRAWS: dict[str, Draw] = {
    "rand": lambda d: torch.rand(5, 3, device=d),
    "randn": lambda d: torch.randn(7, device=d),
    "rand_like": lambda d: torch.rand_like(torch.empty(4, device=d)),
    "randn_like": lambda d: torch.randn_like(torch.empty(4, dtype=torch.float64, device=d)),
    "randint": lambda d: torch.randint(100, (9,), device=d),
    "randint low": lambda d: torch.randint(-50, 50, (9,), device=d),
    "randint_like": lambda d: torch.randint_like(torch.empty(6, device=d), 1000),
    "randperm": lambda d: torch.randperm(50, device=d),
    "uniform_": lambda d: torch.empty(9, device=d).uniform_(-2, 3),
    "normal_": lambda d: torch.empty(9, device=d).normal_(1, 2),
    "exponential_": lambda d: torch.empty(9, device=d).exponential_(0.5),
    "log_normal_": lambda d: torch.empty(9, device=d).log_normal_(),
    "cauchy_": lambda d: torch.empty(9, device=d).cauchy_(),
    "geometric_": lambda d: torch.empty(9, device=d).geometric_(0.3),
    "random_": lambda d: torch.empty(9, dtype=torch.int64, device=d).random_(),
    "random_ to": lambda d: torch.empty(9, dtype=torch.int64, device=d).random_(7),
    "random_ from to": lambda d: torch.empty(9, dtype=torch.int32, device=d).random_(-3, 7),
    "bernoulli": lambda d: torch.bernoulli(torch.full((9,), 0.4, device=d)),
    "bernoulli_": lambda d: torch.empty(9, device=d).bernoulli_(0.4),
    "bernoulli p": lambda d: torch.bernoulli(torch.empty(9, device=d), 0.4),
    "multinomial": lambda d: torch.tensor([1.0, 2.0, 3.0], device=d).multinomial(8, replacement=True),
    "normal of tensors": lambda d: torch.normal(torch.zeros(4, device=d), torch.ones(4, device=d)),
    "normal of a mean": lambda d: torch.normal(torch.zeros(4, device=d), 2.0),
    "normal of a deviation": lambda d: torch.normal(1.0, torch.ones(4, device=d)),
    "poisson": lambda d: torch.poisson(torch.full((9,), 4.0, device=d)),
    "gamma": lambda d: torch._standard_gamma(torch.full((9,), 2.0, device=d)),
    "dirichlet": lambda d: torch._sample_dirichlet(torch.full((3, 4), 2.0, device=d)),
    "binomial": lambda d: torch.binomial(torch.full((9,), 10.0, device=d), torch.full((9,), 0.5, device=d)),
    "dropout": lambda d: torch.nn.functional.dropout(torch.ones(40, device=d), 0.3),
    "native_dropout": lambda d: torch.native_dropout(torch.ones(40, device=d), 0.3, True)[0],
    "alpha_dropout": lambda d: torch.nn.functional.alpha_dropout(torch.ones(40, device=d), 0.3, True),
    "rrelu": lambda d: torch.nn.functional.rrelu(-torch.ones(20, device=d), training=True),
    "rand out": lambda d: torch.rand(5, out=torch.empty(5, device=d)),
    "randint out": lambda d: torch.randint(9, (5,), out=torch.empty(5, dtype=torch.int64, device=d)),
    "randperm out": lambda d: torch.randperm(9, out=torch.empty(9, dtype=torch.int64, device=d)),
    "normal out": lambda d: torch.normal(0.0, 1.0, (5,), out=torch.empty(5, device=d)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_the_cpu(name: str) -> None:
    draw = DRAWS[name]
    drawn = {}
    for device in ("cpu", "flagos", "flagos:2"):
        torch.manual_seed(1234)
        drawn[device] = [draw(device), draw(device)]
    for device in ("flagos", "flagos:2"):
        for one, other in zip(drawn[device], drawn["cpu"], strict=True):
            assert_same(one, other)
    assert not torch.equal(drawn["flagos"][0], drawn["flagos"][1])
    torch.manual_seed(1235)
    assert not torch.equal(draw("flagos"), drawn["flagos"][0])


def test_seeding_warns_of_nothing_and_is_remembered() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.manual_seed(99)
    assert torch.flagos.initial_seed() == 99
    assert torch.random.initial_seed() == 99
    torch.flagos.manual_seed(7)
    assert torch.flagos.initial_seed() == 7
    with torch.flagos.device(1):
        assert torch.flagos.initial_seed() == 99, "manual_seed() seeds the current device only"
    torch.flagos.manual_seed_all(8)
    assert [g.initial_seed() for g in torch.flagos.default_generators] == [8] * DEVICES
    assert torch.flagos.seed() == torch.flagos.initial_seed()
    torch.flagos.seed_all()
    assert len({g.initial_seed() for g in torch.flagos.default_generators}) == 1


def test_states_are_saved_and_restored() -> None:
    torch.manual_seed(3)
    torch.rand(5, device="flagos")
    state = torch.flagos.get_rng_state()
    assert state.dtype == torch.uint8
    assert state.device.type == "cpu"
    drawn = torch.rand(8, device="flagos")
    torch.flagos.set_rng_state(state)
    assert torch.equal(torch.rand(8, device="flagos"), drawn)
    torch.flagos.set_rng_state(state, "flagos:3")
    assert_same(torch.rand(8, device="flagos:3"), drawn.cpu(), device=3)
    states = torch.flagos.get_rng_state_all()
    assert len(states) == DEVICES
    after = [torch.rand(2, device=f"flagos:{i}").cpu() for i in range(DEVICES)]
    torch.flagos.set_rng_state_all(states)
    again = [torch.rand(2, device=f"flagos:{i}").cpu() for i in range(DEVICES)]
    assert all(torch.equal(a, b) for a, b in zip(after, again, strict=True))
    with pytest.raises(RuntimeError):
        torch.flagos.set_rng_state(state[:16])
    with pytest.raises((RuntimeError, TypeError)):
        torch.flagos.set_rng_state(state.float())
    assert torch.rand(1, device="flagos").numel() == 1


def test_fork_rng_puts_the_state_back() -> None:
    torch.manual_seed(11)
    expected = torch.rand(4, device="flagos")
    torch.manual_seed(11)
    with torch.random.fork_rng(devices=[0], device_type="flagos"):
        torch.rand(100, device="flagos")
    assert torch.equal(torch.rand(4, device="flagos"), expected)


def test_generators_of_ones_own() -> None:
    generator = torch.Generator(device="flagos").manual_seed(5)
    assert generator.device == torch.device("flagos", 0)
    torch.manual_seed(1)
    drawn = torch.rand(6, device="flagos", generator=generator)
    expected = torch.rand(6, generator=torch.Generator().manual_seed(5))
    assert_same(drawn, expected)
    torch.manual_seed(1)
    untouched = torch.rand(6)
    assert_same(torch.rand(6, device="flagos"), untouched)
    state = generator.get_state()
    first = torch.randperm(20, device="flagos", generator=generator)
    generator.set_state(state)
    assert torch.equal(torch.randperm(20, device="flagos", generator=generator), first)
    clone = generator.clone_state() if hasattr(generator, "clone_state") else None
    if clone is not None:
        assert torch.equal(
            torch.rand(3, device="flagos", generator=clone),
            torch.rand(3, device="flagos", generator=generator),
        )
    generators = [torch.Generator(device="flagos").manual_seed(i) for i in range(300)]
    values = {torch.rand((), device="flagos", generator=g).item() for g in generators}
    assert len(values) == 300


def test_generators_are_copied_and_pickled() -> None:
    generator = torch.Generator(device="flagos:1").manual_seed(5)
    torch.rand(3, device="flagos:1", generator=generator)
    copies = [copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    expected = torch.rand(4, device="flagos:1", generator=generator)
    for made in copies:
        assert made.device == generator.device
        assert made.initial_seed() == 5
        assert_same(torch.rand(4, device="flagos:1", generator=made), expected.cpu())
    assert generator.get_offset() == 0, "the CPU vendor's generator does not count"
    with pytest.raises(NotImplementedError, match="no offset"):
        generator.set_offset(4)


def test_a_generator_of_another_kind_is_refused() -> None:
    ours = torch.Generator(device="flagos")
    with pytest.raises(RuntimeError, match="device type for generator"):
        torch.rand(2, generator=ours)
    with pytest.raises(RuntimeError, match="device type for generator"):
        torch.empty(2).uniform_(generator=ours)
    with pytest.raises(RuntimeError, match="device type for generator"):
        torch.empty(2, device="flagos").uniform_(generator=torch.Generator())
    with pytest.raises(RuntimeError, match="device type for generator"):
        torch.randperm(3, device="flagos", generator=torch.Generator())


def test_default_generators_are_a_sequence() -> None:
    generators = torch.flagos.default_generators
    assert len(generators) == DEVICES == len(list(generators))
    assert generators[-1].device.index == DEVICES - 1
    assert [g.device.index for g in generators[1:]] == list(range(1, DEVICES))
    assert len(generators[::2]) == (DEVICES + 1) // 2
    with pytest.raises(IndexError):
        generators[DEVICES]
    with pytest.raises(IndexError):
        generators[-DEVICES - 1]
    torch.manual_seed(4)
    a = torch.rand(3, device="flagos:1", generator=generators[1])
    torch.manual_seed(4)
    assert torch.equal(a, torch.rand(3, device="flagos:1"))


def test_distributions_of_many_draws() -> None:
    n = 100_000
    torch.manual_seed(0)
    uniform = torch.rand(n, device="flagos")
    assert 0.0 <= uniform.min().item() < 1e-3
    assert 1 - 1e-3 < uniform.max().item() < 1.0
    assert uniform.mean().item() == pytest.approx(0.5, abs=5 * math.sqrt(1 / 12 / n))
    normal = torch.randn(n + 1, device="flagos")
    assert normal.mean().item() == pytest.approx(0.0, abs=5 / math.sqrt(n))
    assert normal.std().item() == pytest.approx(1.0, abs=0.02)
    assert torch.randint(2**62, (n,), device="flagos").max().item() > 2**61
    kept = torch.nn.functional.dropout(torch.ones(n, device="flagos"), 0.25)
    assert sorted(kept.unique().tolist()) == [0.0, pytest.approx(4 / 3)]
    assert (kept != 0).float().mean().item() == pytest.approx(0.75, abs=0.01)


def test_dropout_backward_uses_the_mask_of_the_forward() -> None:
    x = torch.ones(1000, device="flagos", requires_grad=True)
    out, mask = torch.native_dropout(x, 0.5, True)
    assert mask.dtype == torch.bool
    assert torch.equal(out != 0, mask)
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, mask * 2.0)


def test_a_seed_set_before_the_first_use_counts_and_asks_for_nothing() -> None:
    run(
        """
        import torch
        torch.manual_seed(1)
        torch.manual_seed(42)
        assert not torch.flagos.is_initialized()
        expected = torch.rand(3)
        assert torch.rand(3, device="flagos").tolist() == expected.tolist()
        torch.manual_seed(43)
        expected = torch.rand(3)
        assert torch.rand(3, device="flagos:1").tolist() == expected.tolist()
        """,
        "embedded",
        FLAGOS_DEVICES="2",
    )
    run(
        """
        import torch
        torch.manual_seed(42)
        torch.ones(2).pin_memory()          # attaches
        torch.manual_seed(44)
        expected = torch.randn(3)
        torch.flagos.init()
        assert torch.flagos.initial_seed() == 44
        assert torch.randn(3, device="flagos").tolist() == expected.tolist()
        """,
        "embedded",
    )


def test_a_seed_set_before_the_first_use_does_not_undo_a_later_one() -> None:
    run(
        """
        import torch
        torch.manual_seed(1)
        torch.flagos.default_generators[0].manual_seed(7)
        expected = torch.rand(3, generator=torch.Generator().manual_seed(7))
        assert torch.rand(3, device="flagos").tolist() == expected.tolist()
        """,
        "embedded",
    )
