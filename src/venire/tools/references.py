"""Named tuples of arrays that kernels take by reference.

Numba passes a named tuple by value: every array in it is seven values, and so a function that takes
a desk of 25 arrays has 180 parameters, which each call unpacks and each function packs again. That
was most of the time that it took to compile a policy. A class marked here is one pointer: to the
addresses and the shapes of its arrays. A part that is compiled into its caller leaves no trace of
it; an entry point first copies the table, so that the compiler sees that nothing changes it.

The arrays must be contiguous. Inside a kernel such a tuple is for reading: its fields by name.
"""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,override,attr-defined,import-untyped"
# Numba has few types.

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import register_default
from numba.core.datamodel.models import PrimitiveModel
from numba.core.imputils import lower_getattr_generic
from numba.core.pythonapi import NativeValue, unbox
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, typeof_impl
from numba.np.arrayobj import populate_array

C = TypeVar("C", bound=type)


class Reference(types.Type):
    """A named tuple by reference; `members` are the types of its fields."""

    def __init__(self, origin: Any, members: tuple[types.Type, ...]) -> None:
        self.origin, self.members = origin, members
        names = ", ".join(map(str, members))
        super().__init__(f"{origin.__module__}.{origin.__qualname__}({names})")

    @property
    def mangling_args(self) -> tuple[str, tuple[Any, ...]]:
        """A short name for symbols: that of all members is ten thousand characters long."""
        digest = hashlib.sha256(self.name.encode()).hexdigest()[:16]
        return f"{self.origin.__qualname__}_{digest}", ()


def by_reference(origin: C) -> C:
    """Mark a `NamedTuple` of arrays and numbers: kernels take it by reference.

    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> from numba import njit
    >>> @by_reference
    ... class Scores(NamedTuple):
    ...     values: np.ndarray
    ...     factor: float
    >>> @njit
    ... def scale(scores):
    ...     for i in range(len(scores.values)):
    ...         scores.values[i] *= scores.factor
    >>> scores = Scores(np.arange(3.0), 2.0)
    >>> scale(scores)
    >>> scores.values.tolist()
    [0.0, 2.0, 4.0]
    """

    @typeof_impl.register(origin)
    def _(value: Any, context: Any) -> Reference:
        members = tuple(typeof_impl(member, context) for member in value)
        for name, member in zip(origin._fields, members, strict=True):
            if isinstance(member, types.Array) and member.layout != "C":
                raise TypeError(
                    f"{origin.__name__}.{name} is not contiguous, and kernels take contiguous "
                    "arrays: pass numpy.ascontiguousarray of it"
                )
        return Reference(origin, members)

    return origin


@register_default(Reference)
class _Model(PrimitiveModel):
    """A pointer to a table: for each array its address and shape, other values as they are."""

    def __init__(self, manager: Any, kind: Reference) -> None:
        address, size = ir.IntType(8).as_pointer(), ir.IntType(64)
        self.places: list[int] = []
        columns: list[Any] = []
        for member in kind.members:
            self.places.append(len(columns))
            if isinstance(member, types.Array):
                columns += [address, *[size] * member.ndim]
            else:
                columns.append(manager[member].get_value_type())
        self.table = ir.LiteralStructType(columns)
        super().__init__(manager, kind, self.table.as_pointer())

    def from_argument(self, builder: Any, value: Any) -> Any:
        if "alwaysinline" in builder.function.attributes:
            return value
        own = cgutils.alloca_once(builder, self.table)
        builder.store(builder.load(value), own)
        return own


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, kind: Reference, name: str) -> types.Type | None:
        fields = kind.origin._fields
        return kind.members[fields.index(name)] if name in fields else None


@lower_getattr_generic(Reference)
def _get(context: Any, builder: Any, kind: Reference, value: Any, name: str) -> Any:
    number = kind.origin._fields.index(name)
    member, model = kind.members[number], context.data_model_manager[kind]
    place = model.places[number]

    def column(offset: int) -> Any:
        return builder.load(cgutils.gep_inbounds(builder, value, 0, place + offset))

    if not isinstance(member, types.Array):
        return column(0)
    array = context.make_array(member)(context, builder)
    shape = [column(1 + axis) for axis in range(member.ndim)]
    size = context.get_abi_sizeof(context.get_data_type(member.dtype))
    strides = [context.get_constant(types.intp, size)]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length, flags=["nsw"]))
    data = builder.bitcast(column(0), context.get_data_type(member.dtype).as_pointer())
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()


@unbox(Reference)
def _unbox(kind: Reference, value: Any, c: Any) -> NativeValue:
    """Write the table. The caller keeps the arrays alive, so that no reference is taken."""
    builder, model = c.builder, c.context.data_model_manager[kind]
    table = cgutils.alloca_once(builder, model.table)
    adapt = c.pyapi._get_function(
        ir.FunctionType(ir.IntType(32), [c.pyapi.pyobj, c.pyapi.voidptr]), "numba_adapt_ndarray"
    )
    failed = cgutils.false_bit

    def put(place: int, column: Any) -> None:
        builder.store(column, cgutils.gep_inbounds(builder, table, 0, place))

    for number, (place, member) in enumerate(zip(model.places, kind.members, strict=True)):
        item = c.pyapi.tuple_getitem(value, number)
        if isinstance(member, types.Array):
            array = c.context.make_array(member)(c.context, builder)
            code = builder.call(
                adapt, (item, builder.bitcast(array._getpointer(), c.pyapi.voidptr))
            )
            failed = builder.or_(failed, cgutils.is_not_null(builder, code))
            put(place, builder.bitcast(array.data, c.pyapi.voidptr))
            for axis, length in enumerate(cgutils.unpack_tuple(builder, array.shape, member.ndim)):
                put(place + 1 + axis, length)
        else:
            native = c.unbox(member, item)
            failed = builder.or_(failed, native.is_error)
            put(place, native.value)
    return NativeValue(table, is_error=failed)
