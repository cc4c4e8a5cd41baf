"""tierflow: collective communication of numpy arrays between processes, inside nodes and between them.

    import numpy as np
    import tierflow

    comm = tierflow.world()                  # this process's job
    a = np.full(5, comm.rank + 1.0)
    comm.Allreduce(a)                        # the sums of all ranks
    names = comm.allgather("any object")

Start it by ``tierflow run -n 4 -- python3 prog.py``, or by mpirun, srun or torchrun. Methods with a capital letter take
arrays, those in lower case any object, as mpi4py's do. The library lets other threads of Python run while it waits.
"""
from __future__ import annotations

import atexit
import ctypes
import json
import sys
from typing import Any

from . import _comm, _library
from ._comm import (ANY, AVERAGE, BAND, BOR, BXOR, IN_PLACE, LAND, LOR, LXOR, MAX, MIN, PROD, SUM, Comm, Error, Op, Run, Status)

__version__ = "0.1.0.dev0"
__all__ = ["ANY", "AVERAGE", "BAND", "BOR", "BXOR", "IN_PLACE", "LAND", "LOR", "LXOR", "MAX", "MIN", "PROD", "SUM",
           "Comm", "Error", "Op", "Run", "Status", "world"]

for _each in Comm, Error, Op, Run, Status:
    _each.__module__ = __name__

_world: Comm | None = None


def world(**options: Any) -> Comm:
    """The communicator of all ranks. The first call joins the job that the process was started in, and takes options:

    plan, table, machine, links, recorder, call_timeout (text), deterministic, uniform, managed (bool), as tierflow.h has them.
    The job is left when the program ends; the other ranks hear of an exception that ends it.
    """
    global _world
    if _world is not None and options:
        raise ValueError(f"world: options {', '.join(options)} are for the first call")
    if _world is None:
        made = ctypes.c_void_p()
        config = _library.Config(abi=_library.ABI, options=json.dumps(options).encode() if options else None)
        _comm.check(_library.lib.tf_open(ctypes.byref(config), ctypes.byref(made)))
        _world = Comm(made)
        _comm.interrupt = _comm._Interrupt()
        atexit.register(_leave)
    return _world


def _leave() -> None:
    """Leaves the job. After an exception the calls of other ranks fail, and say why."""
    if _world is None or _world._handle is None:
        return
    failed = getattr(sys, "last_value", None)
    if failed is not None:
        _world.abort(f"{type(failed).__name__}: {failed}")
    try:
        _world.close()
    except Error as e:
        if failed is None:
            print(f"tierflow: {e}", file=sys.stderr)
