"""The backend tierflow of torch.distributed, for CPU tensors.

    import tierflow_torch
    torch.distributed.init_process_group("tierflow")
"""
import atexit
import inspect
import sys

import torch
import torch.distributed as dist

from ._built import TORCH

if torch.__version__ != TORCH:
    raise ImportError(f"tierflow_torch was built for torch {TORCH}, and here is {torch.__version__}: tierflow torch build makes it anew")

from . import _C


def _create(options, _):
    """Makes the process group. Without ranks it is that of all."""
    timeout = options.timeout
    seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else float(timeout)
    return _C.create(options.store, options.group_rank, options.group_size, seconds, list(options.global_ranks_in_group))


def _register():
    register = dist.Backend.register_backend
    later = {"devices": ["cpu"]} if "devices" in inspect.signature(register).parameters else {}  # from torch 2 on
    register("tierflow", _create, extended_api=True, **later)


def _leave():
    """Ends a process that hasn't destroyed its groups. After an exception the calls of the other ranks fail, and say why."""
    failed = getattr(sys, "last_value", None)
    _C.leave("" if failed is None else f"{type(failed).__name__}: {failed}"[:500])


_register()
atexit.register(_leave)
