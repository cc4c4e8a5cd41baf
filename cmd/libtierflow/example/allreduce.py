"""Numpy arrays of all ranks are summed up: tierflow run -n 4 -- python3 allreduce.py ./libtierflow.so"""
import sys
from ctypes import CDLL, Structure, byref, c_char_p, c_int32, c_int64, c_uint8, c_void_p

import numpy

class Config(Structure):
    _fields_ = [("abi", c_int32), ("rank", c_int32), ("size", c_int32), ("share", c_void_p),
                ("progress", c_void_p), ("arg", c_void_p), ("options", c_char_p)]

class Request(Structure):
    _fields_ = [("coll", c_uint8), ("type", c_uint8), ("op", c_uint8), ("in_place", c_uint8), ("root", c_int32), ("count", c_int64),
                ("counts", c_void_p)]

tf = CDLL(sys.argv[1])
tf.tf_error.restype = c_char_p

def check(status):
    if status:
        sys.exit(tf.tf_error().decode())

world = c_void_p()
check(tf.tf_open(byref(Config(abi=2)), byref(world)))
a = numpy.full(5, tf.tf_rank(world) + 1.0)
sum_in_place = Request(coll=3, type=12, op=1, in_place=1, count=a.size)  # TF_ALLREDUCE, TF_F64, TF_SUM
check(tf.tf_call(world, byref(sum_in_place), None, c_void_p(a.ctypes.data)))
print(a.tolist())
check(tf.tf_close(world))
