"""Ranks send to rank 0, rank 1 dies, the others go on: tierflow run -n 4 --min 3 -- python3 survive.py"""
import os

import numpy

import tierflow

comm = tierflow.world(call_timeout="1m")
rank = comm.rank

if rank > 0:
    comm.Send(numpy.array([rank, 0.5]), 0)
else:
    got, came = numpy.zeros(2), 0
    for _ in range(1, comm.size):
        status = comm.Recv(got)
        came += got[0] == status.source and status.count == 2
    print(f"{came} messages")

step = 1
while step <= 3:
    if rank == 1 and step == 2:
        os._exit(0)  # without leaving: it has died
    ranks, well = numpy.ones(1), True
    try:
        comm.Allreduce(ranks)
    except tierflow.Error as e:
        if not e.recoverable:
            raise
        well = False
    if comm.agree(well):
        print(f"step {step}: {ranks[0]:.0f} ranks", flush=True)
        step += 1
        continue
    smaller = comm.shrink()
    comm.close()
    comm = smaller
comm.close()
