# SPDX-License-Identifier: Apache-2.0
"""With FLAGOS_ALIAS_CUDA=1 programs written for "cuda" run on flagos as they are; without it nothing changes.

# contract.md 6
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.daemon import Daemon
from support.program import run

TRAIN = """
    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data, target = torch.ones(16, 4), torch.zeros(16, 1)
    losses = []
    for _ in range(5):
        x, y = data.cuda(non_blocking=True), target.to("cuda")
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.cuda.synchronize()
    assert losses[-1] < losses[0]
    assert next(model.parameters()).is_cuda
    assert torch.cuda.memory_allocated() > 0
    """


def alias(code: str | list[str], endpoint: str = "embedded", setting: str = "1") -> None:
    run(code, endpoint, FLAGOS_ALIAS_CUDA=setting)


@pytest.fixture
def endpoint(start_daemon: Callable[..., Daemon]) -> str:
    """Of a flagosd with four devices."""
    return start_daemon(devices=4).endpoint


def test_a_training_loop_for_cuda_computes_what_the_cpu_does(endpoint: str) -> None:
    alias(
        [
            TRAIN,
            """
        on_device = losses
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        for step in range(5):
            loss = nn.functional.mse_loss(model(data), target)
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
            assert abs(loss.item() - on_device[step]) < 1e-6
        """,
        ],
        endpoint,
    )


@pytest.mark.parametrize("setting", [None, "0", "off", ""])
def test_without_it_cuda_is_what_it_was(setting: str | None) -> None:
    run(
        """
        import torch
        assert not torch.cuda.is_available()
        assert torch.device("cuda").type == "cuda"
        assert torch.device is type(torch.device("cpu"))
        try:
            torch.ones(1, device="cuda")
        except AssertionError:
            pass
        else:
            raise SystemExit(1)
        """,
        "embedded",
        FLAGOS_ALIAS_CUDA=setting,
    )


def test_every_way_to_name_the_device(endpoint: str) -> None:
    alias(
        """
        import torch
        where = torch.device("cuda:1")
        one = torch.device("flagos:1")
        x = torch.arange(3.0)
        for tensor in (
            torch.ones(3, device="cuda:1"), torch.tensor([1, 2], device=where),
            torch.rand(2, device="cuda:1"), torch.randperm(3, device="cuda:1"),
            torch.as_tensor([1.0], device="cuda:1"), torch.asarray([1], device="cuda:1"),
            torch.arange(5, device=where), torch.empty(0, device="cuda:1"),
            torch.ones_like(x, device="cuda:1"), torch.randn_like(x, device=where),
            torch.full((2,), 1, device="cuda:1"), torch.fft.fftfreq(4, device="cuda:1"),
            x.to("cuda:1"), x.to(where), x.to(device="cuda:1"), x.to("cuda:1", torch.float64), x.cuda(1),
            x.cuda("cuda:1"), x.new_ones(2, device="cuda:1"), x.new_tensor([1], device=where),
            torch.nn.Linear(2, 2, device="cuda:1").weight, torch.nn.Linear(2, 2).to("cuda:1").weight,
            torch.nn.Linear(2, 2).cuda(1).weight,
            torch.nn.Linear(2, 2, device="meta").to_empty(device=where).bias,
            x.untyped_storage().cuda(1),
        ):
            assert tensor.device == one == where, tensor
            assert tensor.is_cuda
        assert x.to("cuda:1").tolist() == [0, 1, 2]
        assert x.to("cuda:1", torch.float64).dtype == torch.float64
        assert x.to(torch.float64).device.type == "cpu" and not x.is_cuda
        with torch.device("cuda:2"):
            assert torch.ones(1).get_device() == 2
        torch.set_default_device("cuda:3")
        assert torch.ones(1).get_device() == torch.tensor([1]).get_device() == 3
        torch.set_default_device(None)
        y = torch.ones(2, device="cuda")
        assert y.to("cuda") is y and y.to("cuda:0") is y and y.cuda() is y
        assert x.type("torch.cuda.DoubleTensor").type() == "torch.flagos.DoubleTensor"
        assert isinstance(y, torch.cuda.FloatTensor)
        for wrong in ("cudax", "cuda:9"):
            try:
                torch.ones(1, device=wrong)
            except RuntimeError:
                continue
            raise SystemExit(wrong)
        """,
        endpoint,
    )


def test_devices_are_what_they_were() -> None:
    alias(
        """
        import copy, pickle, torch
        device = torch.device("cuda", 1)
        assert isinstance(device, torch.device) and isinstance(torch.ones(1).device, torch.device)
        assert not isinstance("cuda", torch.device)
        assert issubclass(type(device), torch.device)
        assert torch.device == type(device) and type(device) == torch.device
        assert {torch.device: 1}[type(device)] == 1
        assert device.index == 1 and str(device) == "flagos:1"
        assert device == torch.device(type="cuda", index=1)
        assert torch.device(device) == device and torch.device("cpu").type == "cpu"
        assert hash(device) == hash(torch.device("flagos:1"))
        assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == device
        generator = torch.Generator("cuda").manual_seed(7)
        assert isinstance(generator, torch.Generator) and generator.device.type == "flagos"
        class Mine(torch.Generator):
            def twice(self):
                return 2 * self.initial_seed()
        assert Mine().manual_seed(4).initial_seed() == 4 and isinstance(Mine(), torch.Generator)
        assert Mine().twice() > 0 and not isinstance(generator, Mine)
        try:
            class Device(torch.device):
                pass
        except TypeError:
            pass
        else:
            raise SystemExit("torch.device has no subclasses")
        a = torch.rand(4, device="cuda", generator=generator)
        assert torch.equal(a, torch.rand(4, device="cuda", generator=generator.manual_seed(7)))
        assert a.cpu().tolist() == torch.rand(4, generator=torch.Generator().manual_seed(7)).tolist()
        """
    )


def test_torch_cuda_is_torch_flagos(endpoint: str) -> None:
    alias(
        """
        import torch
        assert torch.cuda.is_available() and torch.cuda.device_count() == 4
        torch.cuda.set_device("cuda:2")
        assert torch.cuda.current_device() == torch.ones(1, device="cuda").get_device() == 2
        with torch.cuda.device(1):
            assert torch.ones(1, device="cuda").get_device() == 1
        with torch.cuda.device("cuda:3"), torch.cuda.device_of(torch.ones(1, device="cuda:0")):
            assert torch.cuda.current_device() == 0
        torch.cuda.set_device(torch.device("cuda:0"))
        assert torch.cuda.get_device_name("cuda:1") == torch.flagos.get_device_name(1)
        assert torch.cuda.get_device_properties(torch.device("cuda:1")).total_memory > 0
        assert torch.cuda.get_device_capability() == (0, 0)

        before = torch.cuda.memory_allocated("cuda")
        x = torch.ones(1024, device="cuda")
        assert torch.cuda.memory_allocated() - before == 4096
        assert torch.cuda.memory.max_memory_allocated() >= torch.cuda.memory_allocated()
        assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == torch.cuda.memory_allocated()
        assert torch.cuda.mem_get_info()[1] > 0 and torch.cuda.memory_summary()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.empty_cache()

        torch.cuda.manual_seed(3)
        a = torch.rand(4, device="cuda")
        state = torch.cuda.get_rng_state()
        b = torch.rand(4, device="cuda")
        torch.cuda.random.set_rng_state(state)
        assert torch.equal(b, torch.rand(4, device="cuda")) and not torch.equal(a, b)
        with torch.random.fork_rng():
            torch.rand(4, device="cuda")
        assert torch.cuda.initial_seed() == 3

        stream, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(stream):
            assert torch.cuda.current_stream() == stream and stream.cuda_stream != 0
            y = x + 1
            event.record()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.default_stream().wait_event(event)
        torch.cuda.synchronize("cuda:0")
        assert event.query() and y.sum().item() == 2048
        assert isinstance(stream, torch.cuda.Stream) and isinstance(torch.Stream("cuda"), torch.Stream)
        assert not torch.cuda.is_current_stream_capturing()
        assert torch.cuda.get_arch_list() == []
        assert not torch.cuda.can_device_access_peer(0, 1)
        torch.cuda.ipc_collect()
        """,
        endpoint,
    )


def test_mixed_precision() -> None:
    alias(
        """
        import torch
        a = torch.eye(2, device="cuda", requires_grad=True)
        for context in (torch.autocast("cuda"), torch.autocast(device_type="cuda"), torch.cuda.amp.autocast(),
                        torch.amp.autocast("cuda", dtype=torch.float16)):
            with context:
                assert torch.is_autocast_enabled() and torch.is_autocast_enabled("cuda")
                assert (a @ a).dtype == torch.float16
        with torch.autocast("cuda", torch.bfloat16):
            assert (a @ a).dtype == torch.bfloat16 == torch.get_autocast_dtype("cuda")
        with torch.autocast("cuda", enabled=False):
            assert (a @ a).dtype == torch.float32
        assert not torch.is_autocast_enabled()
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda")
        for scaler in (torch.amp.GradScaler("cuda"), torch.amp.GradScaler(), torch.cuda.amp.GradScaler(),
                       torch.amp.GradScaler(device="cuda", init_scale=4.0)):
            w = torch.nn.Parameter(torch.ones(2, device="cuda"))
            optimizer = torch.optim.SGD([w], lr=1.0)
            scaler.scale(w.sum()).backward()
            assert w.grad[0].item() == scaler.get_scale() > 1
            scaler.step(optimizer)
            scaler.update()
            assert w.tolist() == [0, 0]

        class Cast(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float16)
            def forward(ctx, x):
                assert x.dtype == torch.float16
                return x * 2
            @staticmethod
            @torch.amp.custom_bwd(device_type="cuda")
            def backward(ctx, grad):
                return grad * 2
        with torch.autocast("cuda"):
            Cast.apply(a).sum().backward()
        assert a.grad.tolist() == [[2, 2], [2, 2]]
        """
    )


def test_saved_tensors_load_to_cuda(endpoint: str) -> None:
    alias(
        """
        import io, torch
        file = io.BytesIO()
        torch.save({"x": torch.arange(3.0), "y": torch.ones(2, device="cuda:1")}, file)
        for where in ("cuda:2", torch.device("cuda:2"), {"cpu": "cuda:2", "flagos:1": "cuda:2"}):
            file.seek(0)
            loaded = torch.load(file, map_location=where)
            assert loaded["x"].get_device() == loaded["y"].get_device() == 2
            assert loaded["x"].tolist() == [0, 1, 2]
        """,
        endpoint,
    )


def test_traced_and_compiled_code_keeps_its_constants() -> None:
    alias(
        """
        import warnings, torch
        warnings.simplefilter("ignore")

        def f(x):
            device = torch.device("cuda")
            y = x.to("cuda") + torch.ones(2, device="cuda") + torch.full((2,), 2.0, device=device)
            if isinstance(device, torch.device) and torch.cuda.is_available():
                y = y + 10 * torch.cuda.current_device() + 100
            with torch.autocast("cuda", torch.bfloat16):
                return y.cuda() + (y @ y).float()

        x = torch.ones(2)
        expected = f(x)
        assert expected.is_cuda and expected.tolist() == [104 + 2 * 104**2] * 2
        compiled = torch.compile(f, backend="eager", fullgraph=True)
        assert torch.equal(compiled(x), expected) and torch.equal(compiled(x.cuda()), expected)

        class Module(torch.nn.Module):
            def forward(self, x):
                ones = torch.ones(2, device=torch.device("cuda"))
                return x.to("cuda") + torch.ones(x.shape, device="cuda") + ones

        traced = torch.fx.symbolic_trace(Module())
        assert "torch.ones" in traced.code and traced(x).tolist() == [3, 3]

        @torch.library.custom_op("flagos_test::moved", mutates_args=())
        def moved(x: torch.Tensor, device: torch.device) -> torch.Tensor:
            return x.to(device) + 1

        assert moved(x, torch.device("cuda")).tolist() == [2, 2]
        """
    )


def test_scripted_code_has_it(tmp_path: Path) -> None:
    (tmp_path / "scripted.py").write_text(  # TorchScript reads sources
        "import torch\n"
        "@torch.jit.script\n"
        "def scripted(x, device: torch.device):\n"
        "    return x.to(device) + torch.ones(2, device=device)\n"
    )
    alias(
        f"""
        import sys, torch
        sys.path.insert(0, {str(tmp_path)!r})
        from scripted import scripted
        y = scripted(torch.ones(2), torch.device("cuda"))
        assert y.is_cuda and y.tolist() == [2, 2]
        """
    )


def test_threads_have_it_too(endpoint: str) -> None:
    alias(
        """
        import threading, torch
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.ones(1, device="cuda:1").device))
        thread.start()
        thread.join()
        assert seen == [torch.device("cuda:1")]
        """,
        endpoint,
    )


def test_modes_see_the_functions_that_they_look_for() -> None:
    alias(
        """
        import torch
        from torch.overrides import TorchFunctionMode
        class Log(TorchFunctionMode):
            def __init__(self):
                super().__init__()
                self.calls = []
            def __torch_function__(self, function, types, args=(), kwargs=None):
                self.calls.append((function, (kwargs or {}).get("device")))
                return function(*args, **(kwargs or {}))
        with Log() as log:
            torch.ones(1, device="cuda").to("cuda")
        assert log.calls == [(torch._C._VariableFunctions.ones, "flagos"), (torch.Tensor.to, None)]
        """
    )
