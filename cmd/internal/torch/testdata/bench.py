"""Allreduces of tierflow and Gloo in turns, on ranks of this host: bench.py [RANKS]. A row is the median of the turns."""
import os
import statistics
import sys
import tempfile
import time

import tierflow_torch  # noqa: F401
import torch
import torch.distributed as dist

TURNS = 11


def rank_of(rank, size, store):
    torch.set_num_threads(1)
    dist.init_process_group("tierflow", init_method=f"file://{store}", rank=rank, world_size=size)
    gloo = dist.new_group(backend="gloo")
    for bytes in (4 << 2 * i + 10 for i in range(7)):
        t = torch.ones(bytes // 4)
        calls = max(5, min(500, (16 << 20) // bytes))
        took = {"tierflow": [], "gloo": []}
        for _ in range(TURNS):
            for name, group in ("tierflow", None), ("gloo", gloo):
                dist.all_reduce(t, group=group)
                dist.barrier(group=group)
                begin = time.perf_counter()
                for _ in range(calls):
                    dist.all_reduce(t, op=dist.ReduceOp.MAX, group=group)
                took[name].append((time.perf_counter() - begin) / calls * 1e6)
        if rank == 0:
            ours, theirs = statistics.median(took["tierflow"]), statistics.median(took["gloo"])
            print(f"| {bytes >> 10} KiB | {ours:.0f} | {theirs:.0f} | {statistics.median(a / b for a, b in zip(*took.values())):.2f} |", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    print("| | tierflow, µs | Gloo, µs | tierflow/Gloo |\n|---|---|---|---|")
    torch.multiprocessing.spawn(rank_of, (size, os.path.join(tempfile.mkdtemp(), "store")), nprocs=size)
