"""Programs over function transforms with unusual or wrong arguments. See `vmap_programs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(name: str) -> Callable[[Any], Any]:
    def declare(f: Any) -> Any:
        PROGRAMS[name] = f
        return f

    return declare


@program("list in_dims")
def _list_in_dims(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a, b: a * b, in_dims=[0, None])(x, v)


@program("list in_dims nested")
def _list_in_dims_nested(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: a[0] * a[1], in_dims=([0, None],))([x, v])


@program("list out_dims")
def _list_out_dims(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: (a, a), out_dims=[0, 1])(x)


@program("list out, tuple out_dims")
def _list_out_tuple_out_dims(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: [a, a], out_dims=(0, 1))(x)


@program("tuple1 out_dims")
def _tuple1_out_dims(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: a, out_dims=(1,))(x)


@program("dict out")
def _dict_out(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: {"k": a, "l": a.sum()}, out_dims={"k": 1, "l": 0})(x)


@program("dict out single")
def _dict_out_single(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: {"k": a}, out_dims=1)(x)


@program("None out")
def _None_out(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: None)(x)


@program("None out dims")
def _None_out_dims(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: (a, None), out_dims=(0, None))(x)


@program("in_dims None element")
def _in_dims_None_element(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a, b: a * b if b is None else a, in_dims=(0, None))(x, None)


@program("in_dims too many")
def _in_dims_too_many(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a, b: a * b, in_dims=(0,))(x, v)


@program("bool dims")
def _bool_dims(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: a, in_dims=(True,))(x)


@program("scalar tensor dim")
def _scalar_tensor_dim(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: a)(v[0])


@program("str arg")
def _str_arg(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a, s: a, in_dims=(0, None))(x, "s")


@program("namedtuple")
def _namedtuple(m: Any, F: Any, x: Any, v: Any) -> Any:
    from collections import namedtuple

    P = namedtuple("P", "a b")
    return F.vmap(lambda p: P(p.a * 2, p.b + 1))(P(x, x))


@program("return input")
def _return_input(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: a)(x)


@program("vjp nested struct")
def _vjp_nested_struct(m: Any, F: Any, x: Any, v: Any) -> Any:
    o, f = F.vjp(lambda d: [d["a"] @ v, (d["b"],)], {"a": x, "b": v})
    return f([m.ones(3, dtype=m.float64), (v,)])


@program("vjp nontensor out")
def _vjp_nontensor_out(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vjp(lambda a: (a, 3), x)


@program("vjp empty")
def _vjp_empty(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vjp(lambda a: (), x)


@program("vjp number primal")
def _vjp_number_primal(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vjp(lambda a: a, 3.0)


@program("vjp int primal")
def _vjp_int_primal(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vjp(lambda a: a.sum(), x.long())


@program("jacrev nontensor")
def _jacrev_nontensor(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacrev(lambda a: 3.0)(x)


@program("jacrev nontensor in")
def _jacrev_nontensor_in(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacrev(lambda a: x)(3.0)


@program("jacfwd nontensor")
def _jacfwd_nontensor(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacfwd(lambda a: 3.0)(x)


@program("jacfwd int")
def _jacfwd_int(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacfwd(lambda a: a * 2)(x.long())


@program("jacrev int out")
def _jacrev_int_out(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacrev(lambda a: a > 0)(x)


@program("jacrev chunk bad")
def _jacrev_chunk_bad(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacrev(lambda a: a, chunk_size=0)(x)


@program("jacrev argnums bad")
def _jacrev_argnums_bad(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacrev(lambda a: a, argnums=3)(x)


@program("jacrev no dep")
def _jacrev_no_dep(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacrev(lambda a: v * 2)(x)


@program("jacfwd no dep")
def _jacfwd_no_dep(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacfwd(lambda a: v * 2)(x)


@program("jacrev kwargs")
def _jacrev_kwargs(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacrev(lambda a, k=1: a * k)(v, k=3)


@program("hessian dict")
def _hessian_dict(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.hessian(lambda d: (d["a"].sin() * d["b"].sum()).sum())({"a": v, "b": v[:2]})


@program("hessian argnums")
def _hessian_argnums(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.hessian(lambda a, b: (a.sin() * b.cos()).sum(), argnums=(0, 1))(v, v)


@program("grad twice nested same")
def _grad_twice_nested_same(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda y: F.grad(lambda z: (z * y) ** 3)(y))(v[0])


@program("grad complex")
def _grad_complex(m: Any, F: Any, x: Any, v: Any) -> Any:
    return m.view_as_real(F.grad(lambda z: (z * z.conj()).real.sum())(m.complex(v, v)))


@program("grad complex out")
def _grad_complex_out(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda z: (z * z).sum())(m.complex(v, v))


@program("stack_module_state empty")
def _stack_module_state_empty(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.stack_module_state([])


@program("functional_call types")
def _functional_call_types(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.functional_call(m.nn.Linear(4, 1), 5, (x,))


@program("functional_call dup")
def _functional_call_dup(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.functional_call(m.nn.Linear(4, 1), ({"bias": v[:1]}, {"bias": v[:1]}), (x,))
