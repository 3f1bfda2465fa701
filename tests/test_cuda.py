"""`torchlab.cuda`, `accelerator`, `backends`, `version` without a GPU, and on the simulated one."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import torchlab as torch
from torchlab._core.backends import cuda as gpus

no_gpu = pytest.mark.skipif(bool(gpus.device_count()), reason="there is a GPU")


@no_gpu
@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.zeros(1, device="cuda"),
        lambda: torch.zeros(1).cuda(),
        lambda: torch.nn.Linear(1, 1).to("cuda"),
        torch.cuda.current_device,
        torch.cuda.synchronize,
    ],
)
def test_without_a_gpu_the_error_says_why_and_what_to_do(use) -> None:
    with pytest.raises(AssertionError, match="CUDA enabled.*CuPy.*device='cpu'"):
        use()


@pytest.mark.parametrize("part", ["cuda", "backends", "distributed", "xpu", "mps"])
def test_what_is_missing_is_named(part: str) -> None:
    with pytest.raises(AttributeError, match=f"torchlab.{part}.*'no_such_thing'.*torchlab"):
        getattr(torch, part).no_such_thing  # noqa: B018
    assert not hasattr(getattr(torch, part), "__wrapped__")


def test_switches_keep_what_was_set() -> None:
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark
    with cudnn.flags(enabled=True, benchmark=not before):
        assert cudnn.benchmark is not before
    assert cudnn.benchmark is before
    with pytest.raises(RuntimeError, match="cudnn.benchmark expects a bool, but got int"):
        cudnn.benchmark = 1


def test_onednn_can_be_switched_off() -> None:
    x, w = torch.randn(1, 3, 8, 8), torch.randn(4, 3, 3, 3)
    a = torch.nn.functional.conv2d(x, w)
    with torch.backends.mkldnn.flags(enabled=False):
        assert not torch.backends.mkldnn.enabled
        b = torch.nn.functional.conv2d(x, w)
    assert torch.backends.mkldnn.enabled
    np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-5)


def test_tf32_and_the_precision_of_products_are_one_setting() -> None:
    before = torch.get_float32_matmul_precision()
    try:
        torch.backends.cuda.matmul.allow_tf32 = True
        assert torch.get_float32_matmul_precision() == "high"
        torch.set_float32_matmul_precision("highest")
        assert torch.backends.cuda.matmul.allow_tf32 is False
    finally:
        torch.set_float32_matmul_precision(before)


def test_attention_switches_are_those_of_sdpa_kernel() -> None:
    cuda, attention = torch.backends.cuda, torch.nn.attention
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        assert cuda.math_sdp_enabled() and not cuda.flash_sdp_enabled()
    cuda.enable_math_sdp(False)
    cuda.enable_flash_sdp(False)
    try:
        q = torch.randn(1, 2, 4)
        with pytest.raises(RuntimeError, match="No viable backend"):
            torch.nn.functional.scaled_dot_product_attention(q, q, q)
    finally:
        cuda.enable_math_sdp(True)
        cuda.enable_flash_sdp(True)


def test_what_it_runs_on() -> None:
    assert torch.version.__version__ == torch.__version__ and torch.version.cuda is None
    assert "NumPy" in torch.__config__.show()
    assert f"get_num_threads() : {torch.get_num_threads()}" in torch.__config__.parallel_info()
    assert torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")


_ON_SIM = """
import torchlab as torch
acc = torch.accelerator
assert acc.is_available() and acc.device_count() == 2
assert acc.current_accelerator() == torch.device("sim")
acc.synchronize(); acc.synchronize("sim:1")
x = torch.ones(256, device=acc.current_accelerator())
assert acc.memory_allocated() >= 1024 and acc.get_memory_info()[1] == acc.get_memory_info(1)[1]
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh())
model.eval()
batch = torch.randn(5, 3)
want = model(batch)
want.sum().backward()
grads = [p.grad.clone() for p in model.parameters()]
model.zero_grad()
both = torch.nn.DataParallel(model.to("sim:0"))
assert both.device_ids == [0, 1]
got = both(batch.to("sim:0"))
assert got.device == torch.device("sim:0") and got.shape == (5, 4)
got.sum().backward()
assert torch.allclose(got.cpu(), want, atol=1e-6)
for p, g in zip(model.parameters(), grads):
    assert p.grad.device == torch.device("sim:0")
    assert torch.allclose(p.grad.cpu(), g, atol=1e-6)
parts = torch.nn.parallel.scatter({"a": batch.to("sim:0"), "b": 3}, [0, 1])
assert [p["a"].shape[0] for p in parts] == [3, 2] and [p["b"] for p in parts] == [3, 3]
assert str(parts[1]["a"].device) == "sim:1"
one = both(batch[:1].to("sim:0"))  # fewer rows than devices
assert one.shape == (1, 4)
try:
    both(torch.ones(4, 7, device="sim:0"))
except RuntimeError as e:
    assert "replica" in "".join(e.__notes__), e.__notes__
else:
    raise AssertionError
print("fine")
"""


def test_the_simulated_accelerator_can_be_the_accelerator() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ON_SIM],
        capture_output=True,
        text=True,
        env={**os.environ, "TORCHLAB_ACCELERATOR": "sim", "TORCHLAB_SIM_DEVICES": "2"},
    )
    assert done.returncode == 0 and done.stdout.strip() == "fine", done.stderr


def test_groups_of_more_processes_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="world_size is 2.*one process only"):
        torch.distributed.init_process_group("gloo", rank=0, world_size=2)
    assert not torch.distributed.is_initialized()


def test_work_is_not_recorded() -> None:
    assert torch.cuda.is_current_stream_capturing() is False
    with pytest.raises(RuntimeError, match="Tried to instantiate dummy base class CUDAGraph"):
        torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="records no graphs"):
        torch.cuda.graph(None)  # type: ignore[arg-type]


@no_gpu
def test_peaks_of_no_gpu_start_again() -> None:
    assert torch.cuda.reset_peak_memory_stats() is None
    assert torch.cuda.reset_accumulated_memory_stats() is None
    assert torch.cuda.reset_max_memory_allocated(0) is torch.cuda.reset_max_memory_cached() is None
