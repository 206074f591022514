# SPDX-License-Identifier: Apache-2.0
"""torch.flagos has what PyTorch's core and users look for."""

import inspect
from collections.abc import Callable
from itertools import count

import flagos
import pytest
import torch
from flagos import backend


def test_everything_listed_is_there_and_documented() -> None:
    for name in backend.__all__:
        thing = getattr(torch.flagos, name)
        if not name.startswith("_") and (inspect.isfunction(thing) or inspect.isclass(thing)):
            assert inspect.getdoc(thing), name
    assert torch.get_device_module("flagos") is torch.flagos is torch.get_device_module()
    assert torch.flagos.random.manual_seed is torch.flagos.manual_seed


def test_names_that_core_uses() -> None:
    assert torch.flagos._utils._get_device_index("flagos:2", True) == 2
    assert torch.flagos._utils._get_device_index(torch.device("flagos"), True) == 0
    assert torch.flagos._exchange_device(1) == 0
    assert torch.flagos._maybe_exchange_device(0) == 1
    assert torch.flagos._exchange_device(-1) == -1
    assert torch.flagos.is_initialized()
    assert not torch.flagos._is_in_bad_fork()
    assert torch.flagos.is_bf16_supported()
    assert torch.bfloat16 in torch.accelerator.get_device_capability()["supported_dtypes"]
    assert torch.device("flagos").type == torch.device("privateuseone").type == "flagos"
    stream = torch.flagos.Stream()
    torch.flagos._set_stream_by_id(stream.stream_id, stream.device_index, stream.device_type)
    assert torch.flagos.current_stream() == stream
    assert torch.flagos._get_raw_stream(0) == stream.stream_id
    torch.flagos.set_stream(torch.flagos.default_stream())


def test_generated_methods() -> None:
    x = torch.arange(3.0)
    assert x.flagos(1).device == torch.device("flagos:1")
    assert x.flagos().is_flagos
    assert not x.is_flagos
    assert torch.nn.Linear(2, 2).flagos().weight.is_flagos
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2, 1), torch.ones(1, 1)])
    assert packed.flagos().is_flagos


def test_session_info_tells_what_a_bug_report_needs() -> None:
    info = torch.flagos.session_info()
    assert info["vendor"] == "cpu"
    assert info["executor_pid"] > 0
    assert info["executor_torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert info["lost"] is False
    assert info["calls"] >= info["synchronous_calls"]


def test_known_calls_do_not_wait() -> None:
    x = torch.ones(8, device="flagos")
    for _ in range(3):
        x = torch.tanh(x * 1.5 + 2.0)
    before = torch.flagos.session_info()
    for _ in range(100):
        x = torch.tanh(x * 1.5 + 2.0)
    after = torch.flagos.session_info()
    assert after["calls"] - before["calls"] == 300
    assert after["synchronous_calls"] == before["synchronous_calls"]
    assert after["mispredictions"] == before["mispredictions"]


def waits(work: Callable[[], object]) -> int:
    """How many of the work's calls wait for their answer, those of what is new left out."""
    work()
    work()
    before = torch.flagos.session_info()["synchronous_calls"]
    for _ in range(10):
        work()
    return int(torch.flagos.session_info()["synchronous_calls"]) - int(before)


def test_indexing_does_not_wait() -> None:
    x = torch.randn(7, 5, device="flagos")
    rows = torch.arange(7, device="flagos")
    columns = torch.arange(7, device="flagos") % 5
    assert waits(lambda: x[rows, columns]) == 0
    assert waits(lambda: x[rows]) == 0


def test_a_new_shape_does_not_wait_where_the_types_are_known() -> None:
    sizes = count(3)
    assert waits(lambda: torch.ones(next(sizes), device="flagos").abs()) == 0
    one = torch.ones(1, dtype=torch.bool, device="flagos")
    assert waits(lambda: torch.logical_and(one.expand(next(sizes)), one)) == 0


def test_in_place_on_parts_of_one_tensor_does_not_wait() -> None:
    x = torch.ones(8, 4, device="flagos")
    assert waits(lambda: x[1].add_(x[0])) == 0
    assert waits(lambda: x.add_(x)) == 0


def test_handles_are_given_back() -> None:
    before = torch.flagos.session_info()["handles"]
    for _ in range(1000):
        torch.ones(4, device="flagos") + 1
    assert torch.flagos.session_info()["handles"] == before


def test_errors_of_other_accelerators_stay_what_they_are() -> None:
    error = torch.AcceleratorError("of another device")
    error.error_code = 700  # type: ignore[attr-defined]
    assert type(error) is torch.AcceleratorError
    assert error.error_code == 700  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        torch.AcceleratorError("fresh").error_code  # type: ignore[attr-defined]  # noqa: B018
    assert issubclass(flagos.DeviceLostError, torch.AcceleratorError)
