# SPDX-License-Identifier: Apache-2.0
"""Memory figures are exact, and memory runs out with an error that says what there is.

# regressions.md 14, 15; contract.md 9, 10, 11, 12, 13
"""

import gc
from collections.abc import Callable

import pytest
import torch
from support.daemon import Daemon
from support.program import run

MIB = 2**20
KEYS = {
    "allocated_bytes",
    "reserved_bytes",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "num_alloc_calls",
    "num_free_calls",
    "num_device_malloc",
    "num_device_free",
    "num_alloc_retries",
}


@pytest.fixture(autouse=True)
def _nothing_floats_about() -> None:
    gc.collect()


def test_the_keys_are_those_of_the_contract() -> None:
    stats = torch.flagos.memory_stats()
    assert {key for key in stats if "." not in key} - {"num_device_alloc"} == KEYS
    assert all(isinstance(value, int) and value >= 0 for value in stats.values())
    assert stats["allocated_bytes.all.current"] == stats["allocated_bytes"]


@pytest.mark.parametrize("device", [0, 2])
def test_live_bytes_are_counted_where_they_are(device: int) -> None:
    before = [torch.flagos.memory_allocated(i) for i in range(4)]
    x = torch.empty(10 * MIB, dtype=torch.uint8, device=f"flagos:{device}")
    y = x + 1  # the result of an operator counts like any other
    now = [torch.flagos.memory_allocated(i) for i in range(4)]
    grown = [after - earlier for after, earlier in zip(now, before, strict=True)]
    assert 20 * MIB <= grown[device] < 21 * MIB
    assert all(n == 0 for i, n in enumerate(grown) if i != device)
    assert torch.flagos.memory_reserved(device) >= now[device]
    view = x[5:]
    del x
    assert torch.flagos.memory_allocated(device) == now[device], "a view keeps its storage"
    del view, y
    assert torch.flagos.memory_allocated(device) == before[device]


def test_peaks_are_rebased_and_counters_go_on() -> None:
    held = torch.ones(4 * MIB, dtype=torch.uint8, device="flagos")
    torch.empty(32 * MIB, dtype=torch.uint8, device="flagos").zero_()
    high = torch.flagos.memory_stats()
    assert high["peak_allocated_bytes"] >= high["allocated_bytes"] + 32 * MIB
    torch.flagos.reset_peak_memory_stats()
    low = torch.flagos.memory_stats()
    assert low["peak_allocated_bytes"] == low["allocated_bytes"] == high["allocated_bytes"] >= 4 * MIB
    assert low["num_alloc_calls"] >= high["num_alloc_calls"] > 0
    assert torch.flagos.max_memory_allocated() == low["peak_allocated_bytes"]
    assert torch.flagos.max_memory_reserved() >= torch.flagos.memory_reserved()
    torch.empty(8 * MIB, dtype=torch.uint8, device="flagos").zero_()
    grown = torch.flagos.max_memory_allocated() - torch.flagos.memory_allocated()
    assert 8 * MIB <= grown < 9 * MIB
    assert held[0].item() == 1


def test_counters_count() -> None:
    before = torch.flagos.memory_stats()
    for _ in range(10):
        torch.empty(1000, device="flagos").fill_(1)
    after = torch.flagos.memory_stats()
    assert after["num_alloc_calls"] - before["num_alloc_calls"] == 10
    assert after["num_free_calls"] - before["num_free_calls"] == 10
    assert after["allocated_bytes"] == before["allocated_bytes"]


def test_freed_memory_is_used_again_and_given_back() -> None:
    for _ in range(2):
        torch.empty(16 * MIB, dtype=torch.uint8, device="flagos").zero_()
    torch.flagos.empty_cache()
    before = torch.flagos.memory_stats()
    for _ in range(2):
        torch.empty(16 * MIB, dtype=torch.uint8, device="flagos").zero_()
    after = torch.flagos.memory_stats()
    assert after["num_device_malloc"] - before["num_device_malloc"] <= 1
    torch.flagos.empty_cache()
    assert torch.flagos.memory_reserved() <= after["reserved_bytes"]
    assert torch.flagos.memory_reserved() - torch.flagos.memory_allocated() < 16 * MIB


def test_accumulated_counts_start_anew_and_the_sessions_go_on() -> None:
    torch.empty(1000, device="flagos:1").fill_(1)
    before = torch.flagos.memory_stats(1)
    torch.flagos.reset_accumulated_memory_stats(1)
    held = torch.empty(1000, device="flagos:1")
    held.clone().zero_()
    after = torch.flagos.memory_stats(1)
    assert (after["allocation.all.allocated"], after["allocation.all.freed"]) == (2, 1)
    assert after["num_alloc_calls"] - before["num_alloc_calls"] == 2
    assert after["allocation.all.current"] == before["allocation.all.current"] + 1
    assert torch.flagos.memory_stats(0)["allocation.all.allocated"] > 2
    assert held.shape == (1000,)


def test_figures_nested_and_for_people() -> None:
    held = torch.ones(1000, device="flagos")
    stats, nested = torch.flagos.memory_stats(), torch.flagos.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == stats["allocated_bytes"] >= 4000
    assert nested["num_alloc_calls"] == stats["num_alloc_calls"]
    whole, short = torch.flagos.memory_summary(), torch.flagos.memory_summary(abbreviated=True)
    assert "num_alloc_calls" in whole
    assert set(short.splitlines()) < set(whole.splitlines())
    assert f"{stats['allocated_bytes']:,}" in short
    assert held[0].item() == 1


def test_what_cannot_be_true_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="flagosd"):
        torch.flagos.set_per_process_memory_fraction(0.5)
    with pytest.raises(NotImplementedError, match="memory_stats"):
        torch.flagos.memory_snapshot()


def test_pytorchs_own_functions_tell_the_same() -> None:
    held = torch.ones(3 * MIB, dtype=torch.uint8, device="flagos")
    assert torch.accelerator.memory_allocated() == torch.flagos.memory_allocated()
    assert torch.accelerator.memory_reserved() == torch.flagos.memory_reserved()
    assert torch.accelerator.memory_stats()["allocated_bytes.all.current"] == torch.flagos.memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.empty_cache()
    free, total = torch.flagos.mem_get_info()
    assert 0 < free <= total
    assert torch.accelerator.get_memory_info()[1] == total
    assert held.sum(dtype=torch.int64).item() == 3 * MIB


def test_tensors_too_large_are_refused_and_the_session_goes_on() -> None:
    _, total = torch.flagos.mem_get_info()
    with pytest.raises(torch.flagos.OutOfMemoryError, match=r"(?i)free|total|limit"):
        torch.empty(4 * total, dtype=torch.uint8, device="flagos")
    with pytest.raises(torch.OutOfMemoryError):
        torch.ones(1, dtype=torch.uint8, device="flagos").expand(4 * total).contiguous()
    with pytest.raises(torch.OutOfMemoryError):
        torch.ones(2**50, dtype=torch.uint8, device="flagos")
    with pytest.raises(RuntimeError):
        torch.empty(2**62, dtype=torch.float64, device="flagos")
    with pytest.raises(RuntimeError, match="negative"):
        torch.empty(-1, device="flagos")
    assert torch.ones(2, device="flagos").tolist() == [1, 1]


def test_a_tensor_of_more_dimensions_than_fit_is_refused() -> None:
    shape = (1,) * 65
    with pytest.raises(RuntimeError, match="64"):
        torch.ones(shape, device="flagos") + 1


def test_memory_that_another_stream_used_is_there_again(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(config="[vendor.cpu]\noptions = { memory = 67108864 }\n")
    run(
        """
        import torch
        MIB = 2**20
        other = torch.flagos.Stream()
        left = torch.full((400, 400), 1 / 400, device="flagos")
        work = left.clone()

        def drop_while_used():
            x = torch.ones(36 * MIB, dtype=torch.uint8, device="flagos")
            torch.flagos.synchronize()
            with torch.flagos.stream(other):
                for _ in range(20):
                    torch.mm(left, left, out=work)
            x.record_stream(other)

        drop_while_used()
        y = torch.empty(36 * MIB, dtype=torch.uint8, device="flagos")  # waits for the other stream
        assert y.fill_(3)[-1].item() == 3
        del y

        half = torch.ones(18 * MIB, dtype=torch.uint8, device="flagos")
        for _ in range(2):  # a first call and a known one
            drop_while_used()
            other.synchronize()
            y = torch.cat((half, half))  # memory that the call asks for
            assert y[-1].item() == 1
            del y

        drop_while_used()
        other.synchronize()
        torch.flagos.empty_cache()
        assert torch.flagos.memory_reserved() < 36 * MIB
        """,
        daemon.endpoint,
    )


def test_nothing_is_asked_of_a_device_that_nobody_used() -> None:
    run(
        """
        import torch
        assert torch.flagos.memory_allocated() == torch.flagos.max_memory_reserved() == 0
        assert set(torch.flagos.memory_stats().values()) == {0}
        torch.flagos.empty_cache()
        torch.flagos.reset_peak_memory_stats()
        torch.flagos.synchronize()
        torch.accelerator.synchronize()
        assert torch.accelerator.memory_allocated() == 0
        assert torch.flagos.session_info() == {}
        assert not torch.flagos.is_initialized()
        torch.flagos.init()
        assert torch.flagos.is_initialized()
        assert torch.flagos.session_info()["endpoint"] == "embedded"
        """,
        "embedded",
    )
