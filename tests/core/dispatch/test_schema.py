"""The schema notation: what each mark means, the round trip, and where errors point."""

from __future__ import annotations

import dataclasses

import pytest

from torchlab._core.dispatch.schema import Argument, Return, SchemaError, Type, parse

TENSOR = Type("Tensor")


def test_functional_with_a_keyword_only_argument() -> None:
    schema = parse("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    assert (schema.name, schema.overload, schema.qualname) == ("add", "Tensor", "add.Tensor")
    assert schema.arguments == (
        Argument("self", TENSOR),
        Argument("other", TENSOR),
        Argument("alpha", Type("Scalar"), default=1, has_default=True, kwarg_only=True),
    )
    assert schema.returns == (Return(None, TENSOR),)
    assert not schema.is_mutable


def test_in_place_writes_its_alias_set() -> None:
    schema = parse("add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)")
    assert schema.arguments[0] == Argument("self", TENSOR, alias="a", write=True)
    assert schema.returns == (Return(None, TENSOR, alias="a", write=True),)
    assert schema.is_mutable
    assert schema.out_arguments == ()


def test_out_arguments_and_named_results() -> None:
    schema = parse(
        "max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, "
        "Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)"
    )
    assert [a.name for a in schema.out_arguments] == ["max", "max_values"]
    assert schema.arguments[2] == Argument("keepdim", Type("bool"), False, True)
    assert [r.name for r in schema.returns] == ["values", "indices"]


def test_a_view_that_may_end_up_in_a_list() -> None:
    schema = parse("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
    assert schema.arguments[0] == Argument("self", TENSOR, alias="a", alias_after="*")
    assert schema.returns == (Return(None, Type("Tensor", list=True), alias="a"),)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("int", Type("int")),
        ("int?", Type("int", optional=True)),
        ("int[]", Type("int", list=True)),
        ("SymInt[2]", Type("SymInt", list=True, size=2)),
        ("int[1]?", Type("int", list=True, size=1, optional=True)),
        ("Tensor?[]", Type("Tensor", list=True, elem_optional=True)),
        ("Tensor?[]?", Type("Tensor", list=True, optional=True, elem_optional=True)),
        ("Dict(str, t)", Type("Dict(str, t)")),
        ("(str, t)[]", Type("(str, t)", list=True)),
    ],
)
def test_types(text: str, kind: Type) -> None:
    assert parse(f"f({text} x) -> ()").arguments[0].type == kind
    assert str(kind) == text


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("int x=-1", -1),
        ("float x=1", 1.0),
        ("float x=1e-5", 1e-5),
        ("bool x=True", True),
        ("int[1]? x=None", None),
        ("int[2] x=[1, 2]", (1, 2)),
        ("SymInt[2] x=1", (1, 1)),
        ("int[1] x=0", (0,)),
        ("int[2]? x=1", 1),
        ("int[1] x=[-2, -1]", (-2, -1)),
        ("int[3] x=[]", ()),
        ("str x='none'", "none"),
        ('str x=" \\n\\t\\"("', ' \n\t"('),
        ("int x=Mean", 1),
        ("MemoryFormat x=contiguous_format", "contiguous_format"),
        ("ScalarType? x=None", None),
    ],
)
def test_defaults(written: str, value: object) -> None:
    argument = parse(f"f({written}) -> Tensor").arguments[0]
    assert argument.has_default
    assert argument.default == value
    assert type(argument.default) is type(value)


def test_no_default_differs_from_the_default_none() -> None:
    required, optional = parse("f(int? a, int? b=None) -> ()").arguments
    assert (required.has_default, optional.has_default) == (False, True)


@pytest.mark.parametrize(
    "text",
    [
        "f() -> ()",
        "aten::f.o(Tensor(a!)[] self, *, Tensor(b!) out) -> (Tensor(a!)[], Tensor(b!))",
        "mylib::g(Tensor(a|b) x, t[](c!) y) -> t(*)?",
        "std(Tensor self, int[1]? dim, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
        'h(float eps=1.0000000000000001e-05, float p=2., str s="a\\"\\\'\\\\") -> Tensor',
        "pool(Tensor self, int[2] k, int[2] stride=[], SymInt[2] p=[0, 0], int[2] d=1) -> Tensor",
        "popitem(Dict(str, t)(a!) self) -> ((str, t))",
        "format(str self, ...) -> str",
        "k(Layout layout=strided, *, Generator? generator=None, Device? device=None) -> Tensor y",
    ],
)
def test_round_trip(text: str) -> None:
    schema = parse(text)
    assert str(schema) == text
    assert parse(str(schema)) == schema
    assert hash(parse(text)) == hash(schema)


def test_spacing_does_not_matter() -> None:
    loose = parse(" f.x( Tensor( a! )  self ,*,int[] y = [1,2] ) ->( Tensor,Tensor z ) ")
    assert str(loose) == "f.x(Tensor(a!) self, *, int[] y=[1, 2]) -> (Tensor, Tensor z)"


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("add Tensor self", "add", "name.overload"),
        ("f(Tensor) -> Tensor", ") ->", "argument's name"),
        ("f(Tensor self Tensor y) -> Tensor", " Tensor y", "after `self`"),
        ("f(Tensor self, ) -> Tensor", ") ->", "argument's type"),
        ("f(Tensor self)", None, "->"),
        ("f(Tensor self) -> ", None, "result's type"),
        ("f(Tensor self) -> Tensor, Tensor", ", Tensor", "parentheses"),
        ("f(Tensor self) -> (Tensor, Tensor", None, "`,` or `)`"),
        ("f(Tensor self) -> (Tensor) x", " x", "end of the schema"),
        ("f(Tensor(a?) self) -> Tensor", "(a?)", "alias mark"),
        ("f(int x=) -> Tensor", ") ->", "default of `x`"),
        ("f(int x=foo) -> Tensor", "foo", "`foo`"),
        ("f(int x=[1]) -> Tensor", "[1]", "a list"),
        ("f(int[3] x=[1, 2]) -> Tensor", "[1, 2]", "2 elements"),
        ("f(int x, *, int y, *, int z) -> Tensor", "*, int z", "second `*`"),
        ("f(int x, int x) -> Tensor", "x) ->", "twice"),
        ("f(int x=1, int y) -> Tensor", "y) ->", "without a default"),
        ("f(..., int y) -> Tensor", "..., int", "last"),
    ],
)
def test_errors_point_at_the_column(text: str, at: str | None, says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse(text)
    assert caught.value.column == (len(text) if at is None else text.index(at))
    assert says in str(caught.value)
    line, caret = str(caught.value).splitlines()[-2:]
    assert caret.index("^") - 2 == caught.value.column
    assert line[2:] == text


def test_records_are_frozen() -> None:
    schema = parse("f(Tensor x) -> Tensor")
    with pytest.raises(dataclasses.FrozenInstanceError):
        schema.name = "g"  # type: ignore[misc]
