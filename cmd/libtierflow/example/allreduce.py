"""Numpy arrays of all ranks are summed up: tierflow run -n 4 -- python3 allreduce.py"""
import numpy

import tierflow

comm = tierflow.world()
a = numpy.full(5, comm.rank + 1.0)
comm.Allreduce(a)
print(a.tolist())
