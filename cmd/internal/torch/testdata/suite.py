"""PyTorch's own suite of tests on a backend: BACKEND=tierflow suite.py [unittest's arguments]. Its file stays as it is.

With BACKEND=gloo AS_GLOO=1 tierflow's groups go by Gloo's name, for the tests that the file has for Gloo alone.
"""
import dataclasses
import os
import sys
import tempfile
import types
import unittest

os.environ.setdefault("BACKEND", "tierflow")
os.environ.setdefault("WORLD_SIZE", "2")
os.environ.setdefault("TEMP_DIR", tempfile.mkdtemp())
for folder in "barrier", "test_dir", "init_dir":
    os.makedirs(os.path.join(os.environ["TEMP_DIR"], folder), exist_ok=True)

try:
    import expecttest  # noqa: F401
except ImportError:  # a base class of tests, of which this suite needs nothing
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase, sys.modules["expecttest"].ACCEPT = unittest.TestCase, False

known = dataclasses.dataclass  # torch 1.13 has one that Python 3.11 refuses: its default can't be hashed


def with_hash(cls=None, **how):
    if cls is None:
        return lambda cls: with_hash(cls, **how)
    made = known(cls, **how)
    made.__hash__ = made.__hash__ or object.__hash__
    return made


dataclasses.dataclass = with_hash

import tierflow_torch  # noqa: E402, F401
import torch.multiprocessing  # noqa: E402
from torch.testing._internal.common_distributed import DistTestCases  # noqa: E402

for feature in "cuda", "ddp", "gpu", "subgroup", "plugin":
    DistTestCases.backend_feature[feature].add("tierflow")

import torch.distributed._shard.sharded_tensor  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

dataclasses.dataclass = known

for backends in distributed_test.PROFILING_SUPPORTED_BACKENDS, distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS:
    backends[:] = ["tierflow"] if os.environ.get("AS_GLOO") else backends + ["tierflow"]  # events have the backend's name


if os.environ.get("AS_GLOO"):
    from torch.distributed import distributed_c10d

    make = distributed_c10d._new_process_group_helper

    def make_ours(size, rank, ranks, backend, store, **more):
        group = make(size, rank, ranks, "tierflow", store, **more)
        if group in distributed_c10d._pg_map:
            distributed_c10d._pg_map[group] = ("gloo", store)
        return group

    distributed_c10d._new_process_group_helper = make_ours


def start(environ, target, *args):
    os.environ.update(environ)  # a forkserver's is that of its start
    target(*args)


class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        context = torch.multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["__main__"])
        self._start_processes(lambda target, name, args: context.Process(target=start, name=name, args=(dict(os.environ), target) + args))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[1:])
