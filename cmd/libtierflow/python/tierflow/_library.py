"""libtierflow.so by ctypes: the types, numbers and functions of tierflow.h."""
import ctypes
import os
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint64, c_void_p

ABI = 2
ANY = -1

BCAST, REDUCE, ALLREDUCE, ALLGATHER, GATHER, SCATTER, REDUCE_SCATTER, ALLTOALL, BARRIER, SCAN, EXSCAN = range(1, 12)
NAMES = ("", "bcast", "reduce", "allreduce", "allgather", "gather", "scatter", "reduce_scatter", "alltoall", "barrier", "scan", "exscan")
I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, C64, C128 = range(1, 15)
SUM, PROD, MIN, MAX = range(1, 5)
BAND, BOR, BXOR, LAND, LOR, LXOR, AVERAGE = range(7, 14)


class Config(Structure):
    _fields_ = [("abi", c_int32), ("rank", c_int32), ("size", c_int32), ("share", c_void_p),
                ("progress", c_void_p), ("arg", c_void_p), ("options", c_char_p)]


class Request(Structure):
    _fields_ = [("coll", c_uint8), ("type", c_uint8), ("op", c_uint8), ("in_place", c_uint8), ("root", c_int32),
                ("count", c_int64), ("counts", c_void_p)]


class Block(Structure):
    _fields_ = [("at", c_void_p), ("bytes", c_int64)]


class Arrived(Structure):
    _fields_ = [("count", c_int64), ("source", c_int)]


def _load():
    """The library: TIERFLOW_LIB's, or that beside this file."""
    name = os.environ.get("TIERFLOW_LIB") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "libtierflow.so")
    try:
        lib = ctypes.CDLL(name)
    except OSError as e:
        raise ImportError(f"tierflow: {e}; pip install builds the library, or TIERFLOW_LIB names one") from None
    for function, types in {
        "tf_open": [c_void_p, c_void_p], "tf_close": [c_void_p], "tf_rank": [c_void_p], "tf_size": [c_void_p], "tf_nodes": [c_void_p],
        "tf_draw": [c_void_p, POINTER(c_uint64)], "tf_sub": [c_void_p, c_uint64, POINTER(c_int), c_int, c_void_p],
        "tf_call": [c_void_p, c_void_p, c_void_p, c_void_p], "tf_call_within": [c_void_p, c_void_p, c_void_p, c_void_p, c_int64],
        "tf_start": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p], "tf_test": [c_void_p, POINTER(c_int)],
        "tf_wait": [c_void_p], "tf_wait_for": [c_void_p, c_int64, POINTER(c_int)],
        "tf_send": [c_void_p, c_int, c_int, c_int, c_void_p, c_int64, c_int64],
        "tf_recv": [c_void_p, c_int, c_int, c_int, c_void_p, c_int64, c_int64, POINTER(Arrived)],
        "tf_start_send": [c_void_p, c_int, c_int, c_int, c_void_p, c_int64, c_void_p],
        "tf_start_recv": [c_void_p, c_int, c_int, c_int, c_void_p, c_int64, POINTER(Arrived), c_void_p],
        "tf_exchange": [c_void_p, c_int, c_int, c_void_p, c_void_p, c_void_p],
        "tf_abort": [c_void_p, c_char_p], "tf_agree": [c_void_p, c_int, c_int64, POINTER(c_int)],
        "tf_shrink": [c_void_p, c_int64, c_void_p, POINTER(c_int)],
        "tf_explain": [c_void_p, c_void_p, c_char_p, c_size_t],
        "tf_recoverable": [], "tf_abi": [],
    }.items():
        getattr(lib, function).argtypes = types
    lib.tf_error.restype = c_char_p
    if lib.tf_abi() != ABI:
        raise ImportError(f"tierflow: {name} has ABI {lib.tf_abi()}, and this package is for {ABI}; install it anew")
    return lib


lib = _load()
