"""torchlab: PyTorch's stack in readable Python, and a laboratory to look inside while it runs.

    import torchlab as torch

Importing loads NumPy and the declarations; calls are generated when they are first used, heavy
libraries are loaded when first needed.
"""

import importlib
import sys as _sys
from typing import Any as _Any

import numpy as _np

from torchlab._core import dtype as _dtype
from torchlab._core import inspection as _inspection
from torchlab._core import legacy as _legacy
from torchlab._core import storages as _storages
from torchlab._core import tensor_face as _tensor_face
from torchlab._core.device import device, get_default_device, set_default_device
from torchlab._core.dispatch import asking as _asking
from torchlab._core.dispatch import registry as _registry
from torchlab._core.dispatch import runtime as _runtime
from torchlab._core.dtype import (
    can_cast,
    dtype,
    get_default_dtype,
    promote_types,
    set_default_dtype,
)
from torchlab._core.errors import OutOfMemoryError
from torchlab._core.formats import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from torchlab._core.generator import Generator, default_generator
from torchlab._core.info import finfo, iinfo
from torchlab._core.inspection import compiled_with_cxx11_abi, get_device_module, typename
from torchlab._core.legacy import set_default_tensor_type
from torchlab._core.ops import FAMILIES as _FAMILIES
from torchlab._core.printing import set_printoptions
from torchlab._core.settings import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_warn_always,
    use_deterministic_algorithms,
)
from torchlab._core.storages import (
    StorageBase,
    TypedStorage,
    UntypedStorage,
    is_storage,
)
from torchlab._core.tensor import Size, Tensor
from torchlab.autograd.api import tensor_backward as _tensor_backward
from torchlab.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from torchlab.torch_version import __version__

_np.seterr(all="ignore")  # Note in torchlab._core.tape: NumPy's warnings cost a microsecond each
for _name in _FAMILIES:
    importlib.import_module(_name)
_registry.install_methods(Tensor)
_tensor_face.install()
Tensor.backward = _tensor_backward  # type: ignore[attr-defined]


def _repr_html(self: Tensor) -> str:
    """The tensor in a notebook, see torchlab.viz.tensor_html."""
    return importlib.import_module("torchlab.viz.tensor_html").tensor_html(self)


Tensor._repr_html_ = _repr_html  # type: ignore[attr-defined]
_asking.watch_class()
globals().update(_dtype.public_names())
globals().update(_legacy.TYPED)
globals().update(_storages.TYPED)
Storage = _storages.TYPED["FloatStorage"]
legacy_contiguous_format = contiguous_format
has_lapack = has_spectral = True  # SciPy's, or NumPy's

inf, nan, pi, e = _np.inf, _np.nan, _np.pi, _np.e
newaxis = None
torch = _sys.modules[__name__]  # programs write `torch.torch.Tensor`, which PyTorch has by accident


# Public names that live higher in the house: loaded when first asked for.
_LAZY = {
    "compile": ("torchlab.compiler", "compile"),
    "Future": ("torchlab.futures._future", "Future"),
    "Event": ("torchlab._core.streams", "Event"),
    "Stream": ("torchlab._core.streams", "Stream"),
    "TensorType": ("torchlab.jit._tensor_type", "TensorType"),
    "ScriptFunction": ("torchlab.jit", "ScriptFunction"),
    "ScriptModule": ("torchlab.jit", "ScriptModule"),
    "Tag": ("torchlab._core.dispatch.tags", "Tag"),
    "cond": ("torchlab._core.control_flow", "cond"),
    "while_loop": ("torchlab._core.control_flow", "while_loop"),
    "DisableTorchFunction": ("torchlab.overrides", "DisableTorchFunction"),
    "DisableTorchFunctionSubclass": ("torchlab.overrides", "DisableTorchFunctionSubclass"),
    "get_num_threads": ("torchlab._core.threads", "get_num_threads"),
    "set_num_threads": ("torchlab._core.threads", "set_num_threads"),
    "get_num_interop_threads": ("torchlab._core.threads", "get_num_interop_threads"),
    "set_num_interop_threads": ("torchlab._core.threads", "set_num_interop_threads"),
    "set_flush_denormal": ("torchlab._core.threads", "set_flush_denormal"),
    "ops": ("torchlab._ops", "ops"),
    "_assert": ("torchlab.fx._symbolic_trace", "_assert"),
    "sparse_coo": ("torchlab._core.ops._sparse", "COO"),
    "sparse_csr": ("torchlab._core.ops._sparse", "CSR"),
    "sparse_csc": ("torchlab._core.ops._sparse", "CSC"),
    "sparse_bsr": ("torchlab._core.ops._sparse", "BSR"),
    "sparse_bsc": ("torchlab._core.ops._sparse", "BSC"),
    "qscheme": ("torchlab._core.ops._quantized", "qscheme"),
    "per_tensor_affine": ("torchlab._core.ops._quantized", "PER_TENSOR"),
    "per_channel_affine": ("torchlab._core.ops._quantized", "PER_CHANNEL"),
    "per_tensor_symmetric": ("torchlab._core.ops._quantized", "PER_TENSOR_SYMMETRIC"),
    "per_channel_symmetric": ("torchlab._core.ops._quantized", "PER_CHANNEL_SYMMETRIC"),
    "per_channel_affine_float_qparams": ("torchlab._core.ops._quantized", "FLOAT_QPARAMS"),
    "vmap": ("torchlab.func", "vmap"),
    "save": ("torchlab.serialization", "save"),
    "load": ("torchlab.serialization", "load"),
    "PyTorchFileReader": ("torchlab.serialization.file_reader", "PyTorchFileReader"),
}

_LAZY |= {
    name: ("torchlab.amp.switches", name)
    for name in """
    autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache
    get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_autocast_ipu_dtype
    get_autocast_xla_dtype is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
    is_autocast_ipu_enabled is_autocast_xla_enabled set_autocast_cache_enabled
    set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled
    set_autocast_gpu_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype
    set_autocast_xla_enabled
    """.split()
}
_LAZY |= {
    name: ("torchlab.fx.experimental._symbolic_numbers", name)
    for name in """
    SymBool SymFloat SymInt sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum
    """.split()
}
_LAZY |= {
    name: ("torchlab.autograd.anomaly_mode", name)
    for name in ("is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled")
}
_LAZY |= {
    name: ("torchlab._core.checking", name)
    for name in """
    _check _check_index _check_is_size _check_not_implemented _check_tensor_all
    _check_tensor_all_with _check_with _check_type
    _check_value
    """.split()
}
_LAZY |= {
    f"_foreach_{name}{end}": ("torchlab._core.foreach", f"_foreach_{name}{end}")
    for name in """
    abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1
    floor frac lerp lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt
    sigmoid sign sin sinh sqrt sub tan tanh trunc
    """.split()
    for end in ("", "_")
}
_LAZY |= {
    f"_foreach_{name}": ("torchlab._core.foreach", f"_foreach_{name}")
    for name in "clone copy_ max mm norm powsum zero_".split()
}
_LAZY |= {
    "autocast": ("torchlab.amp.autocast_mode", "autocast"),
    "GradScaler": ("torchlab.amp.grad_scaler", "GradScaler"),
}


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        module, attribute = _LAZY[name]
        value = getattr(importlib.import_module(module), attribute)
        globals()[name] = value
        return value
    if name in ("has_mkl", "has_openmp"):
        return getattr(_inspection, name)()
    try:
        value = _registry.function(name)
    except AttributeError:
        if name.startswith("__") and name != "__config__":
            raise AttributeError(f"module 'torchlab' has no attribute '{name}'") from None
        try:
            value = importlib.import_module(f"torchlab.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"torchlab.{name}":
                raise
            raise AttributeError(f"module 'torchlab' has no attribute '{name}'") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_registry.FUNCTIONS["torch"], *_LAZY})
