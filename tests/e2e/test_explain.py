# SPDX-License-Identifier: Apache-2.0
"""What the process asked of the device can be seen: torch.flagos.explain() and FLAGOS_LOG."""

import io

import torch
from support.program import Program, run


def test_calls_waits_and_bytes_are_counted() -> None:
    x = torch.rand(8, 16, device="flagos")
    for _ in range(3):
        torch.atan2(x, x)
    torch.flagos.reset_explain()
    for _ in range(5):
        torch.atan2(x, x)
    total = x.sum().item()
    host = torch.ones(1024, dtype=torch.float64)
    x.cpu(), host.to("flagos")
    figures = {figure.name: figure for figure in torch.flagos.explain(file=None)}
    assert total > 0
    atan2 = figures["aten::atan2"]
    assert (atan2.calls, sum(atan2.waits.values()), atan2.fallbacks) == (5, 0, 0)
    item = figures["aten::_local_scalar_dense"]
    assert (item.calls, item.waits["result depends on data"]) == (1, 1)
    copies = figures["aten::copy_"]
    assert (copies.calls, copies.waits["host needs bytes"] >= 1) == (2, True)
    assert (copies.bytes_to_device, copies.bytes_to_host) == (1024 * 8, 8 * 16 * 4)


def test_the_table_has_a_line_for_each_operator() -> None:
    torch.flagos.reset_explain()
    torch.ones(3, device="flagos").sum().item()
    text = io.StringIO()
    figures = torch.flagos.explain(file=text)
    lines = text.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["operator", *(figure.name for figure in figures)]
    assert next(line for line in lines if "_local_scalar_dense" in line).endswith("result depends on data 1")


def test_without_a_session_there_is_nothing_and_nothing_attaches() -> None:
    output = run("import torch; print(torch.flagos.explain(file=None), torch.flagos.is_initialized())")
    assert output.split() == ["[]", "False"]


def run_both(code: str, **env: str) -> tuple[str, str]:
    """Output and standard error of a program with a flagosd of its own."""
    with Program(code, "embedded", **env) as program:
        output = program.finish()
        return output, program.errors


LOGGED = """
    import torch
    x = torch.ones(2, device="flagos")
    x.sum().item()
"""


def test_log_words_choose_what_is_said() -> None:
    _, errors = run_both(LOGGED, FLAGOS_LOG="sync,session,nonsense")
    lines = [line for line in errors.splitlines() if line.startswith("flagos: ")]
    assert any("word 'nonsense', which means nothing" in line for line in lines)
    assert any(line.startswith("flagos: attached to session ") and "vendor cpu" in line for line in lines)
    assert any(line.endswith("_local_scalar_dense waited: result depends on data") for line in lines)


FALLS_BACK = """
    import torch
    library = torch.library.Library("example", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: torch.from_numpy(2 * x.numpy()), "CPU")
    x = torch.arange(3.0, device="flagos:0")
    try:
        y = torch.ops.example.twice(x)
        print(y.device, y.tolist(), [f.fallbacks for f in torch.flagos.explain(None) if f.fallbacks])
    except NotImplementedError as error:
        print("FLAGOS_CPU_FALLBACK=1" in str(error))
"""


def test_nothing_runs_on_the_cpu_unasked() -> None:
    assert run(FALLS_BACK, "embedded").strip() == "True"


def test_what_falls_back_when_asked_is_counted_and_logged() -> None:
    output, errors = run_both(FALLS_BACK, FLAGOS_CPU_FALLBACK="1", FLAGOS_LOG="fallback")
    assert output.strip() == "flagos:0 [0.0, 2.0, 4.0] [1]"
    assert "flagos: example::twice runs on the CPU" in errors
