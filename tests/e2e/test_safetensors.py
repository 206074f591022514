# SPDX-License-Identifier: Apache-2.0
"""Files of safetensors are loaded to flagos by name, whenever the package is imported."""

from pathlib import Path

import pytest
import torch
from support.checks import assert_same
from support.program import run

pytest.importorskip("safetensors")

SAVED = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}


@pytest.fixture
def file(tmp_path: Path) -> str:
    from safetensors.torch import save_file

    path = str(tmp_path / "x.safetensors")
    save_file(SAVED, path)
    return path


@pytest.mark.parametrize("device", ["flagos", "flagos:2", 1, torch.device("flagos:3")])
def test_load_file(file: str, device: str | int | torch.device) -> None:
    from safetensors.torch import load_file

    loaded = load_file(file, device=device)  # type: ignore[arg-type]
    index = device if isinstance(device, int) else torch.device(device).index or 0
    for name, expected in SAVED.items():
        assert_same(loaded[name], expected, device=index)
    assert load_file(file)["a"].device.type == "cpu"
    assert load_file(file, device="cpu")["a"].tolist() == SAVED["a"].tolist()


def test_safe_open_and_load_model(file: str, tmp_path: Path) -> None:
    from safetensors import safe_open
    from safetensors.torch import load_model, save_model

    with safe_open(file, framework="pt", device="flagos:1") as opened:
        assert_same(opened.get_tensor("a"), SAVED["a"], device=1)
        assert_same(opened.get_slice("a")[:, 1:], SAVED["a"][:, 1:].contiguous(), device=1)
    model = torch.nn.Linear(2, 2).to("flagos:2")
    path = str(tmp_path / "model.safetensors")
    save_model(model, path)
    other = torch.nn.Linear(2, 2).to("flagos:2")
    load_model(other, path, device="flagos:2")
    assert torch.equal(other.weight, model.weight)


def test_devices_that_are_not_there_are_refused(file: str) -> None:
    from safetensors.torch import load_file

    with pytest.raises(RuntimeError, match="flagos:9 does not exist"):
        load_file(file, device="flagos:9")
    with pytest.raises(Exception, match="nowhere"):
        load_file(file, device="nowhere")


@pytest.mark.parametrize("order", ["import safetensors.torch, torch", "import torch, safetensors.torch"])
def test_the_order_of_imports_does_not_matter(file: str, order: str) -> None:
    run(
        [
            order,
            f"""
        import importlib.util, sys
        assert not any(type(finder).__module__ == "flagos.safetensors" for finder in sys.meta_path)
        assert safetensors.torch.load_file({file!r}, device="flagos")["a"].sum().item() == 15
        assert importlib.util.find_spec("safetensors").loader is not None
        """,
        ],
        "embedded",
    )


def test_importing_torch_imports_no_safetensors() -> None:
    run(
        """
        import sys, torch
        assert "safetensors" not in sys.modules
        import importlib.util
        assert importlib.util.find_spec("safetensors_that_nobody_has") is None
        """
    )
