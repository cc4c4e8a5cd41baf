"""Arrays as buffers: their memory and element types."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _library as tf

_NUMBERS = {np.dtype(name): number for name, number in {
    "int8": tf.I8, "int16": tf.I16, "int32": tf.I32, "int64": tf.I64, "uint8": tf.U8, "uint16": tf.U16, "uint32": tf.U32,
    "uint64": tf.U64, "float16": tf.F16, "float32": tf.F32, "float64": tf.F64, "complex64": tf.C64, "complex128": tf.C128,
}.items()}

_LOGICAL = (tf.MIN, tf.MAX, tf.BAND, tf.BOR, tf.BXOR, tf.LAND, tf.LOR, tf.LXOR)


def array(x: Any, what: str, write: bool = False) -> np.ndarray:
    """x as an array of the same memory; what names it in errors. x has a buffer, such as a bytearray, or is an array."""
    if type(x) is not np.ndarray:
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError(f"{what}: a masked array; give its data, and its mask apart")
        if isinstance(x, np.ndarray):
            x = x.view(np.ndarray)
        else:
            try:
                x = np.asarray(memoryview(x))
            except TypeError:
                raise TypeError(f"{what}: a {type(x).__name__}; it must be an array, or another object with a buffer; "
                                "objects are for the methods in lower case") from None
    if not x.flags.c_contiguous:
        raise ValueError(f"{what}: the elements don't lie one behind the other; give numpy.ascontiguousarray of it")
    if write and not x.flags.writeable:
        raise ValueError(f"{what}: the array is read-only, and must be written to")
    return x


def address(a: np.ndarray) -> int:
    """Where the array begins."""
    return a.__array_interface__["data"][0]


def moved(a: np.ndarray, what: str) -> tuple[int, int]:
    """The type as which elements travel that nobody combines, and how many of these an element is."""
    number = _NUMBERS.get(a.dtype)
    if number is not None:
        return number, 1
    if a.dtype.hasobject:
        raise TypeError(f"{what}: an array of Python objects; the methods in lower case take these")
    return (tf.BF16, 1) if a.dtype.name == "bfloat16" else (tf.U8, a.dtype.itemsize)


def combined(a: np.ndarray, op: int, what: str) -> int:
    """The type of elements that an operation combines."""
    number = _NUMBERS.get(a.dtype)
    if number is not None:
        return number
    if a.dtype.name == "bfloat16":
        return tf.BF16
    if a.dtype == np.bool_:
        if op in _LOGICAL:
            return tf.U8
        raise TypeError(f"{what}: booleans have MIN, MAX, and the logical and bitwise operations; for a count give them as integers")
    raise TypeError(f"{what}: elements of type {a.dtype}; allowed are {', '.join(str(t) for t in _NUMBERS)}, bfloat16 and bool")
