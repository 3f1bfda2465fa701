"""Public names that are no operators, expression by expression against PyTorch.

Each line is evaluated with `torch` bound to PyTorch and to torchlab; what it prints or the class of
its exception has to agree.
"""

from __future__ import annotations

import re
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import torchlab
import torchlab.utils.dlpack

torch = pytest.importorskip("torch")

INFO = """
torch.finfo()
torch.finfo(torch.float16)
torch.finfo(torch.bfloat16)
torch.finfo(torch.float64)
torch.finfo(torch.complex64)
torch.finfo(torch.float8_e4m3fn)
torch.finfo(torch.float8_e5m2)
torch.iinfo(torch.uint8)
torch.iinfo(torch.int64)
torch.iinfo(torch.uint64)
torch.iinfo(torch.bool)
torch.iinfo(torch.float32)
torch.finfo(torch.int32)
torch.iinfo()
torch.finfo(3)
hash(torch.finfo())
torch.finfo().foo
torch.strided
torch.layout()
torch.memory_format()
isinstance(torch.channels_last, torch.memory_format)
torch.is_complex(3)
torch.is_signed(torch.ones(1, dtype=torch.uint8))
torch.numel([1])
torch.result_type(1, 2.0)
torch.result_type(torch.ones(2, dtype=torch.int8), 3.0)
torch.result_type(torch.ones((), dtype=torch.float64), torch.ones(2, dtype=torch.float16))
torch.result_type(True, 1j)
torch.result_type(torch.ones(2), 'a')
torch.can_cast(torch.float64, torch.int32)
torch.can_cast(torch.int64, torch.bool)
torch.can_cast(3, torch.int8)
torch.promote_types(3, torch.int8)
torch.typename(x)
torch.typename(3)
torch.typename(torch.FloatTensor)
torch.set_num_threads(0)
torch.set_num_threads('a')
torch.set_flush_denormal(3)
torch.set_float32_matmul_precision(3)
torch.use_deterministic_algorithms('a')
torch.set_deterministic_debug_mode('foo')
torch.set_deterministic_debug_mode(5)
torch.set_deterministic_debug_mode(1.5)
torch.set_warn_always(1)
torch.set_default_tensor_type(torch.LongTensor)
torch.set_default_tensor_type(3)
"""

LEGACY = """
torch.FloatTensor
torch.FloatTensor(2, 3).shape
torch.LongTensor([1, 2])
torch.LongTensor(2.5)
torch.LongTensor([1.7])
isinstance(torch.ones(1), torch.FloatTensor)
isinstance(torch.ones(1).double(), torch.FloatTensor)
torch.FloatTensor.dtype
torch.FloatTensor.layout
torch.FloatTensor(torch.ones(2, dtype=torch.int))
torch.FloatTensor().shape
torch.FloatTensor(torch.Size([2])).shape
issubclass(torch.FloatTensor, torch.Tensor)
torch.ByteTensor([300])
torch.BoolTensor([1, 0])
torch.FloatTensor('a')
torch.FloatTensor(None)
torch.FloatTensor([1, 2], [3])
torch.FloatTensor(2, device='meta')
torch.FloatTensor((2, 3))
torch.FloatTensor(3, 2.0)
torch.FloatTensor(-1)
torch.Tensor(torch.ones(2).int())
torch.Tensor(5.0)
torch.Tensor(range(3))
x.new(2, 3).shape
x.new([1, 2])
x.new(x.int())
x.new(2.5)
x.type()
x.type('torch.DoubleTensor').dtype
x.type(torch.LongTensor).dtype
x.type('foo')
x.type(float)
x.storage_type()
x.untyped_storage().nbytes()
x[1].untyped_storage() is x.untyped_storage()
torch.UntypedStorage([1, 300])
torch.UntypedStorage('a')
torch.UntypedStorage(2)[5]
torch.UntypedStorage(2)['a']
torch.FloatStorage([1, 2])
torch.FloatStorage(2, 3)
torch.FloatStorage(torch.ones(2))
torch.FloatStorage(dtype=torch.int)
torch.FloatStorage([1, 2])[1:]
torch.FloatStorage([1, 2])[3]
torch.TypedStorage([1, 2], dtype=torch.int8)
torch.tensor([]).set_(torch.FloatStorage([1, 2, 3]), 1, (2,), (1,))
torch.tensor([]).set_(torch.DoubleStorage([1, 2, 3]))
torch.empty(3, device='meta').untyped_storage()
"""

METHODS = """
x.clone().apply_(lambda v: v * 2)
torch.zeros(2, requires_grad=True).apply_(lambda v: v)
x.clone().apply_(3)
x.clone().apply_(lambda v: 'a')
x.clone().map_(torch.ones(3), lambda a, b: a + b)
x.clone().map_(torch.ones(2, 3, dtype=torch.int), lambda a, b: a + b)
x.clone().map_(torch.ones(4), lambda a, b: a + b)
x.clone().map2_(torch.ones(2, 3), torch.ones(2, 3) * 5, lambda a, b, c: a + b + c)
torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).dim_order()
torch.empty(2, 3).expand(4, 2, 3).dim_order()
torch.empty(1, 2).dim_order(ambiguity_check=True)
torch.empty(2, 3).expand(4, 2, 3).dim_order(ambiguity_check=True)
torch.empty(2, 3).dim_order(ambiguity_check='ABC')
torch.empty(1, 2).dim_order(ambiguity_check=[torch.contiguous_format, torch.channels_last])
torch.empty(2, 1, 3, 1).dim_order(ambiguity_check=[torch.contiguous_format, torch.channels_last])
x.is_set_to(x.view(2, 3))
x.pin_memory()
x.__rdiv__(2)
1 << x.int()
torch.zeros(4).resize(3, 3)
torch.detach_(x[0])
f'{torch.tensor(3)}'
f'{torch.tensor(3.14159):.2f}'
f'{x:.2f}'
int(x)
float(torch.tensor(1j))
complex(x)
"""

DATA = """
torch.tensor([torch.tensor([1., 2.])])
torch.tensor([torch.tensor([1]), torch.tensor([2])])
torch.tensor([torch.tensor(1), 2.5])
torch.tensor([np.array([1.5, 2], dtype=np.float32), [3, 4]])
torch.tensor([np.array([1, 2], dtype=np.int16), np.array([3, 4], dtype=np.int32)])
torch.tensor((np.array([1, 2]), np.array([3])))
torch.tensor([np.float16(3)])
torch.tensor(['a'])
torch.tensor(b'ab')
torch.tensor([b'a'])
torch.tensor(bytearray(b'ab'))
torch.tensor({})
torch.tensor([None])
torch.tensor([[], [1]])
torch.tensor([1, []])
torch.tensor([[1], 2])
torch.tensor([[1, 2], [3]])
torch.tensor(2**63)
torch.tensor([2**64 - 1], dtype=torch.uint64)
torch.tensor([-129], dtype=torch.int8)
torch.tensor([-1], dtype=torch.uint8)
torch.tensor([-256], dtype=torch.uint8)
torch.tensor([-1.], dtype=torch.uint8)
torch.tensor([float('nan')], dtype=torch.int64)
torch.tensor(1j, dtype=torch.float32)
torch.tensor([1j], dtype=torch.int64)
torch.tensor([1j], dtype=torch.bool)
torch.tensor(10**400, dtype=torch.float64)
torch.tensor(iter([1]))
torch.tensor(x)
torch.tensor(a.T).stride()
torch.tensor(a[::-1])
torch.from_numpy(a[::-1])
torch.from_numpy(a.astype('>f8'))
torch.from_numpy(np.array([None]))
torch.as_tensor(a).data_ptr() == a.ctypes.data
torch.asarray(a).data_ptr() == a.ctypes.data
torch.asarray(a, dtype=torch.int32, copy=False)
torch.asarray([1, 2], copy=False)
torch.asarray(bytearray(b'abc'))
torch.asarray(bytearray(b'abc'), dtype=torch.uint8)
torch.frombuffer(bytearray(8), dtype=torch.float32, count=1, offset=4)
torch.frombuffer(bytearray(8), dtype=torch.float32, count=3)
torch.frombuffer(bytearray(7), dtype=torch.float32)
torch.frombuffer(bytearray(0), dtype=torch.float32)
torch.frombuffer(bytearray(8), dtype=torch.float32, offset=9)
torch.frombuffer(3, dtype=torch.float32)
torch.from_dlpack(a)
torch.from_dlpack(3)
torch.from_dlpack(x, device='meta')
x.__dlpack_device__()
x.__dlpack__(stream=1)
x.__dlpack__(stream='a')
torch.empty(2, device='meta').__dlpack_device__()
np.add(a, x)
np.sin(x)
np.isnan(x)
x + a
a + x
np.add.reduce(x)
x.__array_wrap__(np.array([True]))
"""


def _evaluate(module: ModuleType, line: str) -> str:
    names: dict[str, Any] = {"torch": module, "np": np, "a": np.arange(6.0).reshape(2, 3)}
    names["x"] = module.arange(6.0).reshape(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            shown = repr(eval(line, names))
        except Exception as error:
            return type(error).__name__
    return re.sub("0x[0-9a-f]+", "0x", shown).replace("torchlab", "torch")


@pytest.mark.parametrize("line", (INFO + LEGACY + METHODS + DATA).strip().splitlines())
def test_line(line: str) -> None:
    if line:
        assert _evaluate(torchlab, line) == _evaluate(torch, line)


@pytest.mark.parametrize("name", ("bfloat16", "float8_e5m2", "float32", "bool", "complex64"))
def test_dlpack_with_pytorch(name: str) -> None:
    theirs = torch.arange(6).reshape(2, 3).to(getattr(torch, name)).t()
    ours = torchlab.from_dlpack(theirs)
    assert (ours.data_ptr(), ours.stride()) == (theirs.data_ptr(), theirs.stride())
    assert repr(ours) == repr(theirs)
    back = torch.from_dlpack(ours)
    assert back.dtype is theirs.dtype and back.data_ptr() == theirs.data_ptr()


@pytest.mark.parametrize("seed", range(40))
def test_printing_through_the_tensor(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([0, 1, 2, 3, 7, 30], rng.integers(0, 4)))
    name = str(rng.choice(["float32", "float64", "bfloat16", "int64", "bool", "complex64"]))
    values = np.asarray(rng.normal(size=shape) * 10.0 ** rng.integers(-8, 12))
    theirs = torch.from_numpy(values).to(getattr(torch, name))
    ours = torchlab.from_dlpack(theirs)
    options = {
        "precision": int(rng.choice([0, 1, 4, 8])),
        "threshold": int(rng.choice([0, 5, 1000])),
        "edgeitems": int(rng.choice([0, 1, 3])),
        "linewidth": int(rng.choice([10, 40, 80])),
        "sci_mode": [None, True, False][int(rng.integers(3))],
        "profile": [None, "default", "short", "full"][int(rng.integers(4))],
    }
    try:
        for module in (torch, torchlab):
            module.set_printoptions(**options)
        assert repr(ours) == repr(theirs)
        assert str(ours) == str(theirs)
    finally:
        for module in (torch, torchlab):
            module.set_printoptions(profile="default")
