"""Ranks send to rank 0, rank 1 dies, the others go on: tierflow run -n 4 --min 3 -- python3 survive.py ./libtierflow.so"""
import os
import sys
from ctypes import CDLL, POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_uint8, c_void_p

class Config(Structure):
    _fields_ = [("abi", c_int32), ("rank", c_int32), ("size", c_int32), ("share", c_void_p),
                ("progress", c_void_p), ("arg", c_void_p), ("options", c_char_p)]

class Request(Structure):
    _fields_ = [("coll", c_uint8), ("type", c_uint8), ("op", c_uint8), ("in_place", c_uint8), ("root", c_int32), ("count", c_int64),
                ("counts", c_void_p)]

class Status(Structure):
    _fields_ = [("count", c_int64), ("source", c_int)]

tf = CDLL(sys.argv[1])
tf.tf_error.restype = c_char_p
tf.tf_send.argtypes = [c_void_p, c_int, c_int, c_int, c_void_p, c_int64, c_int64]
tf.tf_recv.argtypes = [c_void_p, c_int, c_int, c_int, c_void_p, c_int64, c_int64, POINTER(Status)]
tf.tf_call_within.argtypes = [c_void_p, POINTER(Request), c_void_p, c_void_p, c_int64]
tf.tf_agree.argtypes = [c_void_p, c_int, c_int64, POINTER(c_int)]
tf.tf_shrink.argtypes = [c_void_p, c_int64, POINTER(c_void_p), POINTER(c_int)]
F64, ANY, MINUTE = 12, -1, 60 * 10**9  # TF_F64, TF_ANY, ns

def check(status):
    if status:
        sys.exit(tf.tf_error().decode())

world = c_void_p()
check(tf.tf_open(byref(Config(abi=2)), byref(world)))
rank, size = tf.tf_rank(world), tf.tf_size(world)

if rank > 0:
    check(tf.tf_send(world, 0, 0, F64, (c_double * 2)(rank, 0.5), 2, MINUTE))
else:
    got, status, came = (c_double * 2)(), Status(), 0
    for _ in range(1, size):
        check(tf.tf_recv(world, ANY, 0, F64, got, 2, MINUTE, byref(status)))
        came += got[0] == status.source and status.count == 2
    print(f"{came} messages")

comm, step = world, 1
while step <= 3:
    if rank == 1 and step == 2:
        os._exit(0)  # without tf_close: it has died
    ranks = c_double(1)
    add = Request(coll=3, type=F64, op=1, in_place=1, count=1)  # TF_ALLREDUCE, TF_SUM
    failed, all_well = tf.tf_call_within(comm, byref(add), None, byref(ranks), MINUTE), c_int()
    if failed and not tf.tf_recoverable():
        check(failed)
    if not tf.tf_agree(comm, not failed, MINUTE, byref(all_well)) and all_well:
        print(f"step {step}: {ranks.value:.0f} ranks", flush=True)
        step += 1
        continue
    smaller = c_void_p()
    check(tf.tf_shrink(comm, MINUTE, byref(smaller), None))
    check(tf.tf_close(comm))
    comm = smaller
check(tf.tf_close(comm))
