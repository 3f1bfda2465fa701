"""Put everything that generated code names into its name space."""

from __future__ import annotations

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch import compute, levels, modes, python_key, viewing, writes
from torchlab._core.dispatch.generate.calls import return_type
from torchlab._core.dispatch.generate.source import NAMESPACE
from torchlab._core.dispatch.generate.writes import inplace_call
from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.stacks import STACKS
from torchlab._core.kind import kind
from torchlab._core.memory.storage import TWINS, Storage
from torchlab._core.tape import (
    NOGRAD,
    NOWHERE,
    TLS,
    ViewMeta,
    edge_of,
    next_seq,
    note_write,
    save,
    save_output,
    unpack,
    unpack_spare,
)
from torchlab._core.tensor import Parameter, Size, Tensor, strides_of

NAMESPACE.update(
    np=np,
    ndarray=np.ndarray,
    asarray=np.asarray,
    new=object.__new__,
    T=Tensor,
    P=Parameter,
    strides_of=strides_of,
    Size=Size,
    SLOW=modes.SLOW,
    NOGRAD=NOGRAD,
    TLS=TLS,
    seq=next_seq,
    Storage=Storage,
    TWINS=TWINS,
    same_memory=writes.same_memory,
    ViewMeta=ViewMeta,
    edge_of=edge_of,
    edge_at=levels.edge_at,
    top_level=levels.top_level,
    save=save,
    save_output=save_output,
    unpack=unpack,
    unpack_spare=unpack_spare,
    slow=modes.slow,
    odd=modes.odd,
    face_odd=modes.face_odd,
    equals_array=lambda tensor, array: aten.eq(tensor, aten.from_numpy(array)),
    odd_self=modes.odd_self,
    odd_method=modes.odd_method,
    odd_inplace=writes.odd_inplace,
    return_type_of=return_type,
    inplace_told=lambda op: inplace_call(op, told=True),
    keep=python_key.keep,
    keep_output=python_key.keep_output,
    write_told=python_key.write_told,
    overriding=modes.overriding,
    NUMBERS=compute.NUMBERS,
    SCALARS=compute.SCALARS,
    ONE=1,
    scalar_of=compute.scalar_of,
    elementwise=compute.elementwise,
    execute=compute.execute,
    wrap=compute.wrap,
    all_tensors=compute.all_tensors,
    all_direct=compute.all_direct,
    list_arrays=compute.list_arrays,
    STACKS=STACKS,
    any_edge=compute.any_edge,
    attach_outputs=compute.attach_outputs,
    view_outputs=viewing.view_outputs,
    view_meta=viewing.view_meta,
    view_leaf=viewing.view_leaf,
    meta_view=viewing.meta_view,
    BOOL_KIND=kind(dt.bool_),
    FLOAT16=dt.float16,
    core_of=lambda op: op.core,
    prepare_write=writes.prepare_write,
    check_elementwise_into=writes.check_elementwise_into,
    check_general_into=writes.check_general_into,
    elementwise_into=writes.elementwise_into,
    general_into=writes.general_into,
    saved_original=writes.saved_original,
    wrote=writes.wrote,
    plan_mixed=compute.plan_mixed,
    note_write=note_write,
    NOWHERE=NOWHERE,
    refuse_complex=compute.refuse_complex,
    refuse_integers=compute.refuse_integers,
    rebase_history=writes.rebase_history,
    elementwise_out=writes.elementwise_out,
    face_out=writes.face_out,
    general_out=writes.general_out,
    slow_write=writes.slow_write,
    slow_inplace=writes.slow_inplace,
)
