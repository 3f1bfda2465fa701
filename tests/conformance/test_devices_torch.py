"""`torch.cuda`, `accelerator`, `backends`, `distributed` answer as PyTorch's build for the CPU."""

from __future__ import annotations

import warnings

import pytest

import torchlab
from torchlab._core.backends import cuda as gpus

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(torch.cuda.is_available() or gpus.device_count(), reason="there is a GPU"),
    pytest.mark.filterwarnings("ignore"),
]

ASKED = [
    "cuda.is_available()",
    "cuda.device_count()",
    "cuda.is_initialized()",
    "cuda.init()",
    "cuda.current_device()",
    "cuda.synchronize()",
    "cuda.get_device_name()",
    "cuda.get_device_capability()",
    "cuda.get_device_properties(0)",
    "cuda.can_device_access_peer(0, 1)",
    "cuda.is_bf16_supported()",
    "cuda.is_tf32_supported()",
    "cuda.get_arch_list()",
    "cuda.get_gencode_flags()",
    "cuda.manual_seed(3)",
    "cuda.manual_seed_all(3)",
    "cuda.manual_seed(2.5)",
    "cuda.manual_seed('x')",
    "cuda.seed()",
    "cuda.seed_all()",
    "cuda.initial_seed()",
    "cuda.get_rng_state()",
    "cuda.get_rng_state_all()",
    "cuda.set_rng_state_all([])",
    "cuda.set_rng_state(torch.zeros(3))",
    "cuda.memory_allocated()",
    "cuda.memory_reserved()",
    "cuda.memory_cached()",
    "cuda.max_memory_allocated(), cuda.max_memory_reserved(), cuda.max_memory_cached()",
    "cuda.memory_stats()",
    "cuda.memory_stats_as_nested_dict()",
    "cuda.mem_get_info()",
    "cuda.empty_cache()",
    "cuda.default_generators",
    "cuda.has_half, cuda.has_magma",
    "cuda.Stream()",
    "cuda.Event()",
    "cuda.current_stream()",
    "cuda.default_stream()",
    "cuda.stream(None).__enter__()",
    "cuda.set_device(-1)",
    "cuda.device(-1).__enter__()",
    "cuda.device('cpu').__enter__()",
    "cuda.device_of(torch.zeros(1)).__enter__()",
    "cuda.FloatTensor(2)",
    "isinstance(torch.zeros(1), cuda.FloatTensor)",
    "cuda.HalfTensor.dtype is torch.float16",
    "cuda.amp.amp_definitely_not_available()",
    "cuda.amp.autocast().device",
    "cuda.amp.GradScaler().is_enabled()",
    "torch.cpu.amp.autocast().device",
    "torch.cpu.amp.GradScaler().is_enabled()",
    "torch.zeros(1, device='cuda')",
    "torch.zeros(1).cuda()",
    "torch.zeros(1).to('cuda')",
    "torch.nn.Linear(2, 2).cuda()",
    "torch.get_device_module('cuda').is_available()",
    "torch.get_device_module().__name__.rpartition('.')[2]",
    "accelerator.is_available()",
    "accelerator.device_count()",
    "accelerator.current_accelerator()",
    "accelerator.current_accelerator(check_available=True)",
    "accelerator.current_device_index()",
    "accelerator.current_device_idx()",
    "accelerator.set_device_index(0)",
    "accelerator.set_device_index(None)",
    "accelerator.synchronize()",
    "accelerator.synchronize('cpu')",
    "accelerator.empty_cache()",
    "accelerator.get_memory_info()",
    "accelerator.memory_allocated()",
    "accelerator.max_memory_allocated()",
    "accelerator.memory_reserved()",
    "accelerator.max_memory_reserved()",
    "accelerator.memory_stats()",
    "accelerator.reset_peak_memory_stats()",
    "accelerator.reset_accumulated_memory_stats()",
    "accelerator.device_index(None).__enter__()",
    "accelerator.device_index(0).__enter__()",
    "backends.cudnn.is_available()",
    "backends.cudnn.version()",
    "backends.cudnn.is_acceptable(torch.zeros(1))",
    "setattr(backends.cudnn, 'benchmark', 1)",
    "setattr(backends.cudnn, 'enabled', None)",
    "backends.cudnn.benchmark, backends.cudnn.deterministic, backends.cudnn.enabled",
    "backends.cudnn.allow_tf32",
    "backends.cudnn.set_flags(True)[:5]",
    "backends.mkldnn.deterministic, backends.mkldnn.enabled, backends.mkldnn.allow_tf32",
    "setattr(backends.mkldnn, 'enabled', 1)",
    "setattr(backends.cuda.matmul, 'foo', 1)",
    "setattr(backends.cuda.matmul, 'allow_tf32', 1)",
    "backends.cuda.matmul.foo",
    "backends.cuda.is_built()",
    "backends.cuda.flash_sdp_enabled(), backends.cuda.math_sdp_enabled()",
    "backends.cuda.mem_efficient_sdp_enabled(), backends.cuda.cudnn_sdp_enabled()",
    "backends.cuda.is_flash_attention_available(), backends.cuda.is_ck_sdpa_available()",
    "backends.mps.is_available(), backends.mps.is_built()",
    "backends.openmp.is_available()",
    "backends.mha.get_fastpath_enabled()",
    "backends.cusparselt.is_available(), backends.kleidiai.is_available()",
    "torch.version.cuda, torch.version.hip, torch.version.xpu, torch.version.debug",
    "torch.xpu.is_available(), torch.xpu.device_count(), torch.xpu.is_initialized()",
    "torch.xpu.manual_seed(1), torch.xpu.manual_seed_all(2), torch.xpu.empty_cache()",
    "torch.mps.is_available(), torch.mps.device_count(), torch.mps.manual_seed(1)",
    "distributed.is_available(), distributed.is_initialized()",
    "distributed.is_nccl_available(), distributed.is_gloo_available()",
    "distributed.get_rank()",
    "distributed.get_world_size()",
    "distributed.get_backend()",
    "distributed.barrier()",
    "distributed.all_reduce(torch.ones(1))",
    "distributed.destroy_process_group()",
    "distributed.init_process_group('nccl', 'tcp://127.0.0.1:1', rank=0, world_size=1)",
    "distributed.is_torchelastic_launched()",
    "torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))",
    "torch.nn.parallel.data_parallel(torch.nn.Linear(1, 1), torch.ones(1, 1))",
    "torch.nn.parallel.replicate(torch.nn.Linear(1, 1), ['cpu'])",
    "torch.nn.parallel.replicate(torch.nn.Linear(1, 1), [])",
    "torch.nn.parallel.gather([torch.ones(1)], 'cpu')",
    "torch.nn.parallel.gather([torch.ones(1)], -1)",
    "torch.nn.parallel.scatter((1, 'a'), [0, 1])",
    "torch.nn.parallel.scatter(torch.ones(2), ['cpu'])",
    "torch.nn.DataParallel(torch.nn.Linear(1, 1)).device_ids",
    "torch.nn.DataParallel(torch.nn.Linear(1, 1), device_ids=[0]).device_ids",
    "list(torch.nn.DataParallel(torch.nn.Linear(1, 1)).state_dict())",
    "torch.nn.DataParallel(torch.nn.Linear(1, 1))(torch.ones(1, 3))",
    "repr(torch.nn.DataParallel(torch.nn.Linear(1, 1)))",
]


def _answer(module, question: str):
    """("value", it) or ("raises", class)."""
    names = {
        "torch": module,
        **{n: getattr(module, n) for n in ("cuda", "accelerator", "backends", "distributed")},
    }
    try:
        found = eval(question, names)
    except Exception as e:
        return "raises", type(e)
    return "value", str(found) if isinstance(found, module.device) else found


@pytest.mark.parametrize("question", ASKED)
def test_the_answer_is_the_same(question: str) -> None:
    assert _answer(torchlab, question) == _answer(torch, question)


def test_every_name_of_cuda_is_one_of_pytorchs() -> None:
    ours = set(torchlab.cuda.__all__) - {"AcceleratorError"}
    assert ours <= set(dir(torch.cuda))
    assert set(torchlab.accelerator.__all__) <= set(torch.accelerator.__all__)
    assert set(torchlab.distributed.__all__) <= set(dir(torch.distributed))


def test_seeding_all_devices_gives_the_same_numbers() -> None:
    drawn = []
    for module in (torch, torchlab):
        module.manual_seed(7)
        module.cuda.manual_seed(8)
        module.cuda.manual_seed_all(9)
        drawn.append(module.randn(5).tolist())
    assert drawn[0] == drawn[1]


def test_autocast_for_a_gpu_warns_and_stays_off() -> None:
    for module in (torch, torchlab):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with module.cuda.amp.autocast():
                assert not module.is_autocast_enabled("cuda")
        assert [w.category for w in told] == [FutureWarning, UserWarning]
        assert "torch.amp.autocast('cuda', args...)" in str(told[0].message)


def _wrong_calls(module, t, ddp):
    dist = module.distributed
    return (
        lambda: dist.init_process_group("gloo"),
        lambda: dist.broadcast(t, 1),
        lambda: dist.all_reduce(3),
        lambda: dist.all_gather([t, t], t),
        lambda: module.nn.parallel.DistributedDataParallel(module.nn.ReLU()),
        lambda: module.nn.parallel.DistributedDataParallel(ddp.module, device_ids=[0]),
    )


def test_one_process_reduces_and_gathers(tmp_path) -> None:
    seen = []
    for module in (torch, torchlab):
        dist = module.distributed
        dist.init_process_group(
            "gloo", init_method=f"file://{tmp_path}/{module.__name__}", rank=0, world_size=1
        )
        try:
            t = module.arange(3.0)
            got = [module.zeros(3)]
            objects = [None]
            work = dist.all_reduce(t, dist.ReduceOp.AVG, async_op=True)
            facts = [work.wait(), dist.get_rank(), dist.get_world_size(), dist.get_backend()]
            facts += [dist.broadcast(t, 0), dist.reduce(t, 0), dist.barrier()]
            dist.all_gather(got, t)
            dist.all_gather_object(objects, {"a": 1})
            ddp = module.nn.parallel.DistributedDataParallel(module.nn.Linear(3, 1))
            with module.no_grad():
                ddp.module.weight.fill_(1.0), ddp.module.bias.fill_(0.5)
            with ddp.no_sync():
                ddp(t).sum().backward()
            facts += [t.tolist(), got[0].tolist(), objects, list(ddp.state_dict())]
            facts += [ddp.module.weight.grad.tolist(), ddp.device_type, ddp.device_ids]
            for wrong in _wrong_calls(module, t, ddp):
                with pytest.raises(Exception) as info:
                    wrong()
                facts.append(type(info.value).__name__)
        finally:
            dist.destroy_process_group()
        seen.append([*facts, dist.is_initialized()])
    assert seen[0] == seen[1]


def test_the_sampler_shares_a_dataset_out() -> None:
    for size, n, options in (
        (10, 3, {}), (10, 3, {"drop_last": True}), (9, 3, {"shuffle": False}), (2, 5, {"seed": 4}),
        (1, 4, {"shuffle": False}),
    ):  # fmt: skip
        for rank in range(n):
            orders = []
            for module in (torch, torchlab):
                s = module.utils.data.distributed.DistributedSampler(
                    range(size), num_replicas=n, rank=rank, **options
                )
                s.set_epoch(2)
                orders.append((list(s), len(s), s.total_size))
            assert orders[0] == orders[1]
    for module in (torch, torchlab):
        with pytest.raises(ValueError, match="Invalid rank 3"):
            module.utils.data.DistributedSampler(range(3), num_replicas=3, rank=3)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("what", ["linear", "dict", "two", "several", "constant"])
def test_old_backward_hooks(what: str) -> None:
    seen = []
    for module in (torch, torchlab):

        class Model(module.nn.Module):
            def forward(self, x):
                if what == "dict":
                    return {"a": x * 2, "b": (x,)}
                if what == "two":
                    return x * 2, x * 3
                return (x * 2).square() if what == "several" else x.detach() * 1

        gradients = []

        def hook(m, grad_input, grad_output, gradients=gradients):
            sizes = [
                [None if g is None else tuple(g.shape) for g in gs]
                for gs in (grad_input, grad_output)
            ]
            gradients.append(sizes)
            return tuple(None if g is None else g * 2 for g in grad_input)

        model = module.nn.Linear(2, 2) if what == "linear" else Model()
        if what == "linear":
            with module.no_grad():
                model.weight.copy_(module.arange(4.0).reshape(2, 2))
        model.register_backward_hook(hook)
        x = module.ones(2, 2, requires_grad=True)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            out = model(x)
        out = out["a"] if what == "dict" else out[0] + out[1] if what == "two" else out
        if out.requires_grad:
            out.sum().backward()
        grad = None if x.grad is None else x.grad.tolist()
        seen.append((gradients, grad, [(w.category, str(w.message)) for w in told]))
    assert seen[0] == seen[1]
