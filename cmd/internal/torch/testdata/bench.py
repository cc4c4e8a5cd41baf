"""Calls of tierflow and Gloo in turns: bench.py [RANKS [CALL…]], on ranks of this host, or with RANK and STORE set one of them.

A row is the median of the turns, with the least and greatest ratio. CALL is all_reduce, all_gather, reduce_scatter, broadcast,
all_to_all or step: a forward and backward pass of a model of so many bytes by DistributedDataParallel. A size is that of the
tensor that has all.
"""
import os
import statistics
import sys
import tempfile
import time

import tierflow_torch  # noqa: F401
import torch
import torch.distributed as dist

TURNS = int(os.environ.get("TURNS", 11))
SIZES = [int(s) << 10 for s in os.environ.get("KIB", "4 16 64 256 1024 4096 16384").split()]
CALLS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"]


def calls_of(what, bytes, size, group):
    """The call, without arguments."""
    if what == "step":
        return step_of(bytes, group)
    n = bytes // 4 // size * size
    whole, part = torch.ones(n), torch.ones(n // size)
    parts = list(whole.chunk(size))
    if what == "all_reduce":
        return lambda: dist.all_reduce(whole, op=dist.ReduceOp.MAX, group=group)
    if what == "broadcast":
        return lambda: dist.broadcast(whole, 0, group=group)
    if what == "all_gather":
        return lambda: dist.all_gather(parts, part, group=group)
    if what == "reduce_scatter":
        return lambda: dist.reduce_scatter(part, parts, op=dist.ReduceOp.MAX, group=group)
    other = torch.ones(n)
    return lambda: dist.all_to_all_single(other, whole, group=group)


def step_of(bytes, group):
    """A model of layers of 1 MiB of parameters, on one example."""
    width, layers = 512, max(1, bytes >> 20)
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers)))
    model = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    x = torch.ones(1, width)

    def step():
        model.zero_grad()
        model(x).sum().backward()

    return step


def rank_of(rank, size, store, whats):
    torch.set_num_threads(1)
    dist.init_process_group("tierflow", init_method=store, rank=rank, world_size=size)
    gloo = dist.new_group(backend="gloo")
    for what in whats:
        for bytes in SIZES:
            took = {"tierflow": [], "gloo": []}
            each = {"tierflow": calls_of(what, bytes, size, None), "gloo": None}
            try:
                each["gloo"] = calls_of(what, bytes, size, gloo)
                each["gloo"]()
            except RuntimeError as e:
                if rank == 0:
                    print(f"| {what} | {bytes >> 10} KiB | | | Gloo: {str(e).splitlines()[0]} |", flush=True)
                break
            calls = 1
            for _ in range(TURNS + 1):  # the first one finds out how many calls to time
                for name, group in ("tierflow", None), ("gloo", gloo):
                    each[name]()
                    dist.barrier(group=group)
                    begin = time.perf_counter()
                    for _ in range(calls):
                        each[name]()
                    dist.barrier(group=group)
                    took[name].append((time.perf_counter() - begin) / calls * 1e6)
                if calls == 1:
                    often = torch.tensor([max(3, min(500, int(1e5 / max(took[name][0] for name in took))))])
                    dist.broadcast(often, 0)
                    calls = int(often)
                    took = {"tierflow": [], "gloo": []}
            if rank == 0:
                ours, theirs = (statistics.median(took[name]) for name in took)
                ratios = [a / b for a, b in zip(*took.values())]
                print(f"| {what} | {bytes >> 10} KiB | {ours:.0f} | {theirs:.0f} | {statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}) |", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    whats = sys.argv[2:] or CALLS
    rank = int(os.environ.get("RANK", 0))
    if rank == 0:
        print("| call | | tierflow, µs | Gloo, µs | tierflow/Gloo |\n|---|---|---|---|---|", flush=True)
    if "STORE" in os.environ:
        rank_of(rank, size, os.environ["STORE"], whats)
    else:
        torch.multiprocessing.spawn(rank_of, (size, "file://" + os.path.join(tempfile.mkdtemp(), "store"), whats), nprocs=size)
