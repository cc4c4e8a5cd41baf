"""Every method of the package tierflow on arrays beside numpy's own answer: python3 numpy_ranks.py SEED, as several ranks."""
import os
import random
import signal
import sys
import threading

import numpy as np

import tierflow
from tierflow import IN_PLACE

comm = tierflow.world()
me, n = comm.rank, comm.size
draw = random.Random(int(sys.argv[1]))  # the same on all ranks


def equal(got, want, what):
    if got is None or want is None:
        assert got is want, f"{what}: {got}, want {want}"
        return
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all(), f"{what}: {got!r}, want {want!r}"


def shape():
    return tuple(draw.choice((0, 1, 2, 3, 7)) if draw.random() < 0.5 else draw.randrange(1, 40) for _ in range(draw.randrange(0, 3)))


kinds = [np.dtype(t) for t in "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()]
try:
    import ml_dtypes
    kinds.append(np.dtype(ml_dtypes.bfloat16))
except ImportError:
    pass


def inputs(dtype, dims):
    """An array for each rank: all ranks know those of all. Small whole numbers, of which sums and products are exact."""
    seed = draw.randrange(1 << 30)
    return [np.asarray(np.random.default_rng((seed, r)).integers(0, 3, dims)).astype(dtype) for r in range(n)]


def fold(arrays, function):
    result = arrays[0].copy()
    for a in arrays[1:]:
        result = function(result, a)
    return np.asarray(result).astype(arrays[0].dtype)


def operation(dtype):
    some = [(tierflow.SUM, np.add), (tierflow.PROD, np.multiply)]
    if dtype.kind != "c":
        some += [(tierflow.MIN, np.minimum), (tierflow.MAX, np.maximum)]
    if dtype.kind in "iu":
        some += [(tierflow.BAND, np.bitwise_and), (tierflow.BOR, np.bitwise_or), (tierflow.BXOR, np.bitwise_xor),
                 (tierflow.LAND, np.logical_and), (tierflow.LOR, np.logical_or), (tierflow.LXOR, np.logical_xor)]
    return draw.choice(some)


def finish(call, start, *args, **more):
    """The result of a method, or of the one that starts it."""
    return start(*args, **more).wait() if start and draw.random() < 0.5 else call(*args, **more)


def reductions():
    dtype, dims, root = draw.choice(kinds), shape(), draw.randrange(n)
    op, function = operation(dtype)
    all_in = inputs(dtype, dims)
    mine, total = all_in[me], fold(all_in, function)
    what = f"{op} of {dtype}{list(dims)}"
    equal(finish(comm.Allreduce, comm.Iallreduce, mine, np.empty_like(mine), op=op), total, "allreduce: " + what)
    a = mine.copy()
    assert finish(comm.Allreduce, comm.Iallreduce, a, op) is a
    equal(a, total, "allreduce in place: " + what)
    equal(finish(comm.Reduce, comm.Ireduce, mine, op=op, root=root), total if me == root else None, "reduce: " + what)
    a = mine.copy()
    if me == root:
        comm.Reduce(IN_PLACE, a, op, root)
        equal(a, total, "reduce in place: " + what)
    else:
        comm.Reduce(a, None, op, root)
    equal(comm.Scan(mine, np.empty_like(mine), op), fold(all_in[:me + 1], function), "scan: " + what)
    a = mine.copy()
    comm.Exscan(a, op)
    if me > 0:
        equal(a, fold(all_in[:me], function), "exscan: " + what)
    all_in = inputs(dtype, (n, *dims))
    equal(finish(comm.Reduce_scatter_block, comm.Ireduce_scatter_block, all_in[me], op=op), fold(all_in, function)[me:me + 1], "reduce_scatter: " + what)


def moves():
    dtype, dims, root = draw.choice(kinds + [np.dtype(bool), np.dtype(">i4"), np.dtype([("a", "i2"), ("b", "f8")]), np.dtype("U3")]), shape(), draw.randrange(n)
    all_in = [a.astype(dtype) for a in inputs(np.dtype("i4"), dims)]
    mine, what = all_in[me], f"{dtype}{list(dims)}"
    a = mine.copy()
    assert finish(comm.Bcast, comm.Ibcast, a, root) is a
    equal(a, all_in[root], "bcast: " + what)
    stacked = np.stack(all_in).astype(dtype)  # numpy makes the order of bytes the usual one
    equal(finish(comm.Allgather, comm.Iallgather, mine), stacked, "allgather: " + what)
    a = np.zeros_like(stacked)
    a[me] = mine
    comm.Allgather(IN_PLACE, a)
    equal(a, stacked, "allgather in place: " + what)
    equal(finish(comm.Gather, comm.Igather, mine, root=root), stacked if me == root else None, "gather: " + what)
    got = finish(comm.Scatter, comm.Iscatter, stacked if me == root else None, np.zeros_like(mine), root=root)
    equal(got, mine, "scatter: " + what)
    blocks = [np.stack([a] * n).astype(dtype) for a in all_in]
    equal(finish(comm.Alltoall, comm.Ialltoall, blocks[me]), stacked, "alltoall: " + what)
    a = blocks[me].copy()
    comm.Alltoall(IN_PLACE, a)
    equal(a, stacked, "alltoall in place: " + what)
    # blocks that differ
    counts = [draw.randrange(4) for _ in range(n)]
    parts = [np.full(c, r, np.int32).astype(dtype) for r, c in enumerate(counts)]
    joined = np.concatenate(parts).astype(dtype)
    equal(comm.Allgatherv(parts[me], counts), joined, "allgatherv: " + what)
    equal(comm.Gatherv(parts[me], counts, root=root), joined if me == root else None, "gatherv: " + what)
    equal(comm.Scatterv(joined if me == root else None, counts, np.zeros_like(parts[me]), root=root), parts[me], "scatterv: " + what)
    table = [[draw.choice((0, 1, 5, 2000)) for _ in range(n)] for _ in range(n)]
    send = np.concatenate([np.full(c, 10 * me + to, np.int32).astype(dtype) for to, c in enumerate(table[me])]).astype(dtype)
    want = np.concatenate([np.full(table[r][me], 10 * r + me, np.int32).astype(dtype) for r in range(n)]).astype(dtype)
    equal(comm.Alltoallv(send, table[me], np.zeros_like(want), [table[r][me] for r in range(n)]), want, "alltoallv: " + what)


def messages():
    dtype, dims, tag = draw.choice(kinds), shape(), draw.randrange(5)
    all_in = inputs(dtype, dims)
    to, source = (me + 1) % n, (me - 1) % n
    got = np.zeros_like(all_in[me])
    run = comm.Irecv(got, source if draw.random() < 0.5 else tierflow.ANY, tag)
    comm.Isend(all_in[me], to, tag).wait()
    assert run.wait() == (source, got.size), run.wait()
    equal(got, all_in[source], "message")
    equal(comm.Sendrecv(all_in[me], to, again := np.zeros_like(got), source), (source, got.size), "sendrecv")
    equal(again, all_in[source], "sendrecv")
    comm.Barrier()
    objects = [{"rank": r, "list": list(range(draw.randrange(3000)))} for r in range(n)]
    root = draw.randrange(n)
    assert comm.allgather(objects[me]) == objects
    assert comm.bcast(objects[root] if me == root else None, root) == objects[root]
    assert comm.gather(objects[me], root) == (objects if me == root else None)
    assert comm.scatter(objects if me == root else None, root) == objects[me]
    assert comm.alltoall([(me, r, "x" * 100 * r) for r in range(n)]) == [(r, me, "x" * 100 * me) for r in range(n)]
    assert comm.reduce(me, max, root) == (n - 1 if me == root else None)
    assert comm.allreduce(me + 1.0, tierflow.AVERAGE) == (n + 1) / 2
    if me == 0:
        comm.send(objects, n - 1, tag)
    elif me == n - 1:
        assert comm.recv(0, tag) == objects


def communicators():
    color = [draw.choice((None, 0, 1)) for _ in range(n)]
    part = comm.split(color[me], -me)
    members = [r for r in reversed(range(n)) if color[r] == color[me]]
    assert (part is None) == (color[me] is None)
    if part:
        with part:
            assert part.allgather(me) == members and part.rank == members.index(me)
    others = [comm.dup() for _ in range(2)]
    results = [0.0, 0.0]

    def count(i):
        for _ in range(50):
            results[i] += others[i].Allreduce(np.ones(3))[0]

    threads = [threading.Thread(target=count, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [50.0 * n] * 2, results
    for o in others:
        o.close()
    try:
        others[0].Barrier()
        raise AssertionError("a closed communicator has a barrier")
    except tierflow.Error as e:
        assert str(e) == "the communicator is closed", e


def refusals():
    a = np.zeros(2 * n)
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    for text, kind, call in [
        ("allreduce: a list; it must be an array", TypeError, lambda: comm.Allreduce([1, 2])),
        ("don't lie one behind the other", ValueError, lambda: comm.Allreduce(np.zeros((4, 4))[:, 1])),
        ("the array is read-only", ValueError, lambda: comm.Allreduce(fixed)),
        ("send is of float64, recv of float32", TypeError, lambda: comm.Allreduce(a, np.zeros(2 * n, "f4"))),
        ("recv has 3 elements; it must have", ValueError, lambda: comm.Allreduce(a, np.zeros(3))),
        ("elements of type >i4; allowed are", TypeError, lambda: comm.Allreduce(np.zeros(3, ">i4"))),
        ("elements of type object; allowed are", TypeError, lambda: comm.Allreduce(np.array([None]))),
        ("an array of Python objects; the methods in lower case", TypeError, lambda: comm.Bcast(np.array([None]))),
        ("booleans have MIN, MAX", TypeError, lambda: comm.Allreduce(np.zeros(3, bool))),
        (f"root {n}; ranks are 0 to {n - 1}", ValueError, lambda: comm.Bcast(a, n)),
        (f"elements for {n} ranks; blocks are of equal size", ValueError, lambda: comm.Alltoall(np.zeros(n + 1))),
        ("IN_PLACE is in the place of the rank's own block alone", ValueError, lambda: comm.Allgather(a, IN_PLACE)),
        ("with counts", ValueError, lambda: comm.Allgatherv(a, [1] * n)),
        ("counts [1]; it takes one from 0 on for each", ValueError, lambda: comm.Allgatherv(a, [1])),
        ("0 objects; it takes one for each", ValueError, lambda: comm.alltoall([])),
        ("timeout 0: it must be more than 0 seconds", ValueError, lambda: comm.Barrier(timeout=0)),
        ("op 'sum'; allowed are tierflow.SUM", TypeError, lambda: comm.Allreduce(a, op="sum")),
        ("bor", tierflow.Error, lambda: comm.Allreduce(a, tierflow.BOR)),
        ("for the first call", ValueError, lambda: tierflow.world(plan="x")),
        ("explain: 'x'; allowed are bcast", ValueError, lambda: comm.explain("x", a)),
        ("color -1", ValueError, lambda: comm.split(-1)),
    ]:
        try:
            call()
        except kind as e:
            assert text in str(e), f"{e!r}, want {text!r}"
        else:
            raise AssertionError(f"no error, want {text!r}")
    late = comm.Irecv(a, (me + 1) % n, 9)
    try:
        late.wait(timeout=0.01)
        raise AssertionError("a message that nobody sent")
    except TimeoutError:
        assert not late.done()
    comm.Barrier()
    comm.Send(a[:1], (me - 1) % n, 9)
    assert late.wait(60) == ((me + 1) % n, 1)
    assert "plan: " in comm.explain("bcast", a)


for _ in range(30):
    for part in (reductions, moves, messages):
        part()
for part in (communicators, refusals):
    part()

# Ctrl-C ends a call that would last for ever, on all ranks.
if me == 0:
    def press():
        while tierflow._comm.interrupt.inside is None:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    other = comm.dup()
    threading.Thread(target=press).start()
    try:
        other.Barrier()
        raise AssertionError("a barrier without the others has ended")
    except KeyboardInterrupt:
        pass
else:
    other = comm.dup()
    try:
        other.Recv(np.zeros(1), 0)
        raise AssertionError("a message that nobody sent")
    except tierflow.Error as e:
        assert "interrupted by Ctrl-C" in str(e), e
other.close()
comm.Barrier()
print("well")
