# SPDX-License-Identifier: Apache-2.0
"""Kernel libraries: who chooses them, what runs then, and what is said where a choice leads nowhere."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.daemon import Daemon
from support.program import Program, ask, run

# Numbers of which float32 loses some when it adds them: the vendor's own sum is not 1000.
NUMBERS = """
    import json, torch
    numbers = torch.cat([torch.tensor([1e8]), torch.ones(1000), torch.tensor([-1e8])])
    x = numbers.to("flagos")
    def ran():
        return {figure.name: figure.libraries for figure in torch.flagos.explain(None)}
"""
NATIVE = torch.cat([torch.tensor([1e8]), torch.ones(1000), torch.tensor([-1e8])]).sum().item()
SUMS = [NUMBERS, 'print(json.dumps([x.sum().item(), ran()["aten::sum.dim_IntList"]]))']


def test_the_numbers_tell_the_kernels_apart() -> None:
    assert NATIVE != 1000


@pytest.fixture
def routes(tmp_path: Path) -> Callable[[str], str]:
    """Writes a file of routes; its path."""

    def write(text: str) -> str:
        path = tmp_path / "routes.conf"
        path.write_text(text, errors="surrogateescape")
        return str(path)

    return write


ALL = """
    def both(f, *tensors):
        got = f(*(t.to("flagos") for t in tensors)).cpu()
        return got.dtype == torch.float32 and torch.equal(got, f(*(t.double() for t in tensors)).float())

    torch.manual_seed(0)
    a, b = torch.randn(40, 3000) * 1e3 + 1e4, torch.randn(3000)
    print(json.dumps({
        "sum": both(lambda t: t.sum(), numbers), "rows": both(lambda t: t.sum(1, keepdim=True), a),
        "columns": both(lambda t: t.sum([0]), a), "mean": both(lambda t: t.mean(-1), a),
        "dot": both(torch.dot, b, b), "softmax": both(lambda t: t.softmax(0), a / 1e3),
        "log_softmax": both(lambda t: t.log_softmax(1), a / 1e3), "scalar": both(lambda t: t.sum(), b[0]),
        "empty": both(lambda t: t.sum(0), a[:0]), "integers": x.int().sum().item() == 1000,
        "ran": ran()}))
"""


def test_a_file_chooses_for_each_operator(routes: Callable[[str], str]) -> None:
    config = routes("# all of it\nsum = accurate\naten::mean.dim = accurate\ndot=accurate # twice\n"
                    "_softmax = accurate\n_log_softmax.default = accurate\n")  # fmt: skip
    answer = ask([NUMBERS, ALL], "embedded", FLAGOS_BACKEND_CONFIG=config)
    ran = answer.pop("ran")
    assert answer == dict.fromkeys(answer, True)
    assert ran["aten::dot"] == {"accurate": 1}
    assert ran["aten::_softmax"] == {"accurate": 1}
    assert ran["aten::sum.dim_IntList"] == {"accurate": 5, "native": 1}, "integers are not its own"
    assert ran["aten::copy_"].keys() == {"native"}


def test_what_is_too_large_is_infinite() -> None:
    program = """
        import torch
        x = torch.full((3,), 3e38, device="flagos")
        print(torch.dot(x, x).item(), torch.dot(x, -x).item(), x.sum().item())
        """
    assert (
        run(program, "embedded", FLAGOS_OP_dot="accurate", FLAGOS_OP_sum="accurate").strip() == "inf -inf inf"
    )


def test_gradients_flow_as_ever(routes: Callable[[str], str]) -> None:
    code = """
        x.requires_grad_()
        (x.softmax(0) * x).sum().backward()
        y = numbers.double().requires_grad_()
        (y.softmax(0) * y).sum().backward()
        print(torch.allclose(x.grad.cpu().double(), y.grad))
    """
    config = routes("sum = accurate\n_softmax = accurate\n")
    assert run([NUMBERS, code], "embedded", FLAGOS_BACKEND_CONFIG=config).strip() == "True"


def test_included_lines_hold_until_later_ones(routes: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "all.conf").write_text("include sums.conf\ndot = accurate\n")
    (tmp_path / "sub" / "sums.conf").write_text("sum = accurate\nmean = accurate\n")
    config = routes("sum = native\ninclude sub/all.conf\nmean = native\n")
    code = """
        x.sum(), x.mean()
        print(json.dumps([ran()["aten::sum.dim_IntList"], ran()["aten::mean.dim"]]))
    """
    assert ask([NUMBERS, code], "embedded", FLAGOS_BACKEND_CONFIG=config) == [{"accurate": 1}, {"native": 1}]


def test_a_variable_wins_over_the_file_and_needs_none(routes: Callable[[str], str]) -> None:
    config = routes("sum = accurate\n")
    assert ask(SUMS, "embedded", FLAGOS_BACKEND_CONFIG=config) == [1000, {"accurate": 1}]
    native = [NATIVE, {"native": 1}]
    assert ask(SUMS, "embedded", FLAGOS_BACKEND_CONFIG=config, FLAGOS_OP_sum="native") == native
    assert ask(SUMS, "embedded", FLAGOS_OP_sum="accurate", FLAGOS_OP_sum__dim_IntList="native") == native
    assert ask(SUMS, "embedded", FLAGOS_OP_sum__dim_IntList="accurate") == [1000, {"accurate": 1}]


REFUSED = """
    import torch
    for _ in range(2):
        try:
            torch.ones(2, device="flagos")
        except ValueError as error:
            print(error)
"""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("\nsum accurate\n", "routes.conf:2: 'sum accurate' is no route; write OPERATOR = LIBRARY"),
        (
            "sum = accurat\n",
            "routes.conf:1: there is no kernel library 'accurat' (there are: native, accurate)",
        ),
        ("\udcff\udcfe bad\n", "routes.conf:1: '?? bad' is no route"),
        ("summ = accurate\n", "routes.conf:1: PyTorch has no operator 'aten::summ'"),
        ("softmax = accurate\n", "routes.conf:1: calls of 'aten::softmax' never reach a device"),
        ("empty.memory_format = accurate\n", "routes.conf:1: 'aten::empty' makes storages, views or copies"),
        ("copy_ = accurate\n", "routes.conf:1: 'aten::copy_' makes storages, views or copies"),
        ("include gone.conf\n", "gone.conf, which "),
        ("include routes.conf\n", "routes.conf:1: 'include routes.conf' is nested deeper than 8 files"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_line(
    routes: Callable[[str], str], text: str, complaint: str
) -> None:
    lines = run(REFUSED, "embedded", FLAGOS_BACKEND_CONFIG=routes(text)).splitlines()
    assert len(lines) == 2
    assert lines[0] == lines[1]
    assert complaint in lines[0]


def test_a_mistake_in_the_environment_is_told() -> None:
    missing = run(REFUSED, "embedded", FLAGOS_BACKEND_CONFIG="/nonexistent/routes")
    assert "/nonexistent/routes, which FLAGOS_BACKEND_CONFIG names: No such file or directory" in missing
    assert "the variable FLAGOS_OP_summ names no operator" in run(
        REFUSED, "embedded", FLAGOS_OP_summ="accurate"
    )
    unknown = run(REFUSED, "embedded", FLAGOS_OP_sum="fast")
    assert "the variable FLAGOS_OP_sum: there is no kernel library 'fast'" in unknown


def test_a_pipe_is_no_file_of_routes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert f"{pipe}, which FLAGOS_BACKEND_CONFIG names: it is a pipe" in run(
        REFUSED, "embedded", FLAGOS_BACKEND_CONFIG=str(pipe)
    )


def test_what_a_library_lacks_runs_natively_and_shows(routes: Callable[[str], str]) -> None:
    code = 'y = x.view(2, -1); y.mm(y.t()); print(json.dumps(ran()["aten::mm"]))'
    with Program([NUMBERS, code], "embedded", FLAGOS_BACKEND_CONFIG=routes("mm = accurate\n")) as program:
        assert program.answer() == {"accurate": 0, "native": 1}
        program.finish()
    assert "routes.conf:1: kernel library 'accurate' has no kernel for 'aten::mm'" in program.errors


def test_the_log_says_what_ran(routes: Callable[[str], str]) -> None:
    code = [NUMBERS, "for _ in range(2): x.sum()\nx.double().sum().item()"]
    config = routes("sum = accurate\n")
    with Program(code, "embedded", FLAGOS_BACKEND_CONFIG=config, FLAGOS_LOG="dispatch") as program:
        program.finish()
    lines = [line.split(" ", 2)[2] for line in program.errors.splitlines() if line.startswith("flagos: ")]
    assert [line.removesuffix(" (waited)") for line in lines if "sum" in line] == [
        "aten::sum.dim_IntList -> accurate",
        "aten::sum.dim_IntList -> accurate",
        "aten::sum.dim_IntList -> native",
    ]
    assert "aten::_local_scalar_dense -> native (waited)" in lines


def test_flagosd_chooses_for_who_does_not(
    routes: Callable[[str], str], start_daemon: Callable[..., Daemon]
) -> None:
    config = f'[vendor.cpu]\noptions = {{ routes = "{routes("sum = accurate")}" }}\n'
    endpoint = start_daemon(config=config).endpoint
    assert ask(SUMS, endpoint) == [1000, {"accurate": 1}]
    assert ask(SUMS, endpoint, FLAGOS_OP_sum="native") == [NATIVE, {"native": 1}]


def test_a_mistake_of_flagosd_is_told_to_who_attaches(
    routes: Callable[[str], str], start_daemon: Callable[..., Daemon]
) -> None:
    config = f'[vendor.cpu]\noptions = {{ routes = "{routes("sum = fast")}" }}\n'
    daemon = start_daemon(config=config)
    code = """
        import torch
        try:
            torch.ones(2, device="flagos")
        except ValueError as error:
            print(error)
    """
    assert "routes.conf:1: there is no kernel library 'fast'" in run(code, daemon.endpoint)


def test_libraries_are_listed() -> None:
    (accurate,) = torch.flagos.kernel_libraries()
    assert (accurate.name, accurate.error) == ("accurate", "")
    assert "float64" in accurate.description
    assert "aten::sum.dim_IntList" in accurate.operators


def figures_of(name: str) -> Any:
    return next(figure for figure in torch.flagos.explain(None) if figure.name == name)


def test_without_a_choice_everything_is_native() -> None:
    torch.flagos.reset_explain()
    x = torch.ones(5, device="flagos")
    x.sum(), x.sum()
    assert figures_of("aten::sum.dim_IntList").libraries == {"native": 2}
    text = io.StringIO()
    torch.flagos.explain(text)
    assert (
        next(line for line in text.getvalue().splitlines() if "sum.dim_IntList" in line).split()[6]
        == "native"
    )


def test_counting_begins_anew_for_libraries_too(routes: Callable[[str], str]) -> None:
    code = """
        x.sum()
        torch.flagos.reset_explain()
        x.sum(), x.double().sum()
        print(json.dumps(ran()["aten::sum.dim_IntList"]))
    """
    config = routes("sum = accurate\n")
    assert ask([NUMBERS, code], "embedded", FLAGOS_BACKEND_CONFIG=config) == {"accurate": 1, "native": 1}
