"""The ranks of tests: ranks.py reads lines WHAT INIT_METHOD SIZE SEED DIR. The ranks of each write to the files DIR/0, DIR/1 and so
on; then a line of their statuses is printed. ranks.py WHAT INIT_METHOD is a rank of torchrun."""
import atexit
import os
import random
import signal
import sys
from datetime import timedelta

import torch
import torch.distributed as dist


def serve():
    """Returns in each rank, as what its line says. They are forks, as loading PyTorch takes longer than most tests; Go's runtime is
    loaded after."""
    for line in sys.stdin:
        what, init_method, size, seed, folder = line.split()
        ranks = []
        for r in range(int(size)):
            pid = os.fork()
            if pid == 0:
                file = os.open(os.path.join(folder, str(r)), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
                os.dup2(file, 1)
                os.dup2(file, 2)
                if what != "training":  # which ends like any program
                    atexit.register(leave)
                return what, init_method, r, int(size), int(seed)
            ranks.append(pid)
        print(*[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in ranks], flush=True)
    sys.exit()


def leave():
    """Ends a rank when all else that is to happen at its end has. Taking PyTorch apart in a fork copies all its pages, and takes ten
    times as long as most tests."""
    sys.stdout.flush()
    os._exit(1 if hasattr(sys, "last_value") else 0)


if len(sys.argv) > 1:
    what, init_method, rank, size, seed = sys.argv[1], sys.argv[2], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), 1
else:
    what, init_method, rank, size, seed = serve()
draw = random.Random(seed)  # the same on all ranks
import tierflow_torch  # noqa: E402, F401

INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
REALS = [torch.float16, torch.float32, torch.float64]
OTHERS = [torch.int16, torch.bool, torch.bfloat16, torch.complex64, torch.complex128]  # that Gloo has not


def join(seconds=300):
    dist.init_process_group("tierflow", init_method=init_method, rank=rank, world_size=size, timeout=timedelta(seconds=seconds))
    return dist.new_group(backend="gloo")


def shape():
    return [draw.randint(1, 9) for _ in range(draw.randint(0, 3))]


def filled(shape, dtype, salt):
    """A tensor of numbers that differ by rank; every third one not in line."""
    g = torch.Generator().manual_seed(draw.randint(0, 1 << 30) + 1000003 * salt)
    t = torch.randint(0, 3, shape, generator=g)
    if dtype.is_floating_point or dtype.is_complex:
        t = t + torch.rand(shape, generator=g)
    t = t.to(dtype)
    if t.dim() > 1 and draw.randint(0, 2) == 0:
        t = t.transpose(0, 1).contiguous().transpose(0, 1)
    return t


def same(name, got, want):
    got, want = (x if isinstance(x, (list, tuple)) else [x] for x in (got, want))
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert g.dtype == w.dtype and g.shape == w.shape, f"{name}, result {i}: {g.dtype} {g.shape}, want {w.dtype} {w.shape}"
        exact = not (g.is_floating_point() or g.is_complex())
        near = {torch.float16: 1e-2, torch.bfloat16: 3e-2}.get(g.dtype, 1e-5)
        if not (torch.equal(g, w) if exact else torch.allclose(g, w, rtol=near, atol=near)):
            raise AssertionError(f"{name}, result {i}:\n{g}\nwant\n{w}")


def all_of(t, gloo):
    """The tensors of all ranks, by Gloo, as bytes if it hasn't their type."""
    t = t.contiguous()
    bits = t.reshape(-1).view(torch.uint8) if t.dtype is not torch.bool else t.reshape(-1).to(torch.uint8)
    got = [torch.empty_like(bits) for _ in range(size)]
    dist.all_gather(got, bits, group=gloo)
    return [b.to(torch.bool).view(t.shape) if t.dtype is torch.bool else b.view(t.dtype).view(t.shape) for b in got]


def reduced(list, op):
    """What ranks' tensors are together."""
    if op == "AVG":
        return (sum(x.double() if not x.is_complex() else x for x in list) / size).to(list[0].dtype)
    dtype, all = list[0].dtype, torch.stack([x.to(torch.int64) if x.dtype in INTEGERS + [torch.int16, torch.bool] else x.double() if not x.is_complex() else x for x in list])
    if op == "SUM":
        r = all.sum(0)
    elif op == "PRODUCT":
        r = all.prod(0)
    elif op == "MIN":
        r = all.amin(0)
    elif op == "MAX":
        r = all.amax(0)
    else:
        r = all[0]
        for x in all[1:]:
            r = {"BAND": r & x, "BOR": r | x, "BXOR": r ^ x}[op]
    return r.to(dtype)


def operation(dtype):
    if dtype.is_complex:
        return draw.choice(["SUM", "AVG"])
    if dtype.is_floating_point:
        return draw.choice(["SUM", "PRODUCT", "MIN", "MAX", "AVG"])
    return draw.choice(["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"])


def one(gloo, i):
    """Calls each collective once, and Gloo's, or what is known of the result from all inputs."""
    dtype = draw.choice(INTEGERS + REALS + OTHERS)
    known_to_gloo = dtype in INTEGERS + REALS
    s, op, root = shape(), operation(dtype), draw.randrange(size)
    about = f"{i}: {dtype} {s} {op} root {root}"
    mine = filled(s, dtype, rank)
    every = all_of(mine, gloo)
    total = reduced(every, op)
    reduce_op = getattr(dist.ReduceOp, op)

    t = mine.clone()
    dist.all_reduce(t, op=reduce_op)
    same("all_reduce " + about, t, total)
    if known_to_gloo and op != "AVG":
        g = mine.clone().contiguous()
        dist.all_reduce(g, op=reduce_op, group=gloo)
        same("Gloo's all_reduce " + about, t, g)

    t = mine.clone()
    dist.reduce(t, root, op=reduce_op)
    same("reduce " + about, t, total if rank == root else mine)

    t = mine.clone()
    dist.broadcast(t, root)
    same("broadcast " + about, t, every[root])

    out = [filled(s, dtype, 7) for _ in range(size)]
    dist.all_gather(out, mine)
    same("all_gather " + about, out, every)

    flat = torch.empty([size] + s, dtype=dtype)
    dist._all_gather_base(flat, mine)
    same("_all_gather_base " + about, flat, torch.stack(every))

    out = [torch.empty(s, dtype=dtype) for _ in range(size)] if rank == root else None
    dist.gather(mine, out, dst=root)
    if rank == root:
        same("gather " + about, out, every)

    blocks = [filled(s, dtype, rank * 100 + r) for r in range(size)]
    theirs = [all_of(b, gloo) for b in blocks]  # [to][from]
    t = torch.empty(s, dtype=dtype)
    dist.scatter(t, blocks if rank == root else None, src=root)
    same("scatter " + about, t, theirs[rank][root])

    t = torch.empty(s, dtype=dtype)
    dist.reduce_scatter(t, blocks, op=reduce_op)
    same("reduce_scatter " + about, t, reduced(theirs[rank], op))

    t = torch.empty(s, dtype=dtype)
    dist._reduce_scatter_base(t, torch.stack(blocks), op=reduce_op)
    same("_reduce_scatter_base " + about, t, reduced(theirs[rank], op))

    out = [torch.empty(s, dtype=dtype) for _ in range(size)]
    dist.all_to_all(out, blocks)
    same("all_to_all " + about, out, theirs[rank])

    out = torch.empty([size] + s, dtype=dtype)
    dist.all_to_all_single(out, torch.stack(blocks))
    same("all_to_all_single " + about, out, torch.stack(theirs[rank]))

    # Lists whose tensors lie one behind the other, with this rank's own among them, and in another order.
    for order in range(size), reversed(range(size)):
        order = list(order)
        room = list(torch.stack([mine] * size).unbind())
        dist.all_gather([room[i] for i in order], room[order[rank]])
        same("all_gather in a row " + about, [room[i] for i in order], every)
        room = list(torch.stack([mine] * size).unbind())
        dist.gather(room[order[rank]], [room[i] for i in order] if rank == root else None, dst=root)
        if rank == root:
            same("gather in a row " + about, [room[i] for i in order], every)
        row = list(torch.stack([blocks[i] for i in order]).unbind())
        dist.scatter(row[0], [row[order.index(r)] for r in range(size)] if rank == root else None, src=root)
        same("scatter in a row " + about, row[0], theirs[rank][root])
        row = list(torch.stack([blocks[i] for i in order]).unbind())
        dist.reduce_scatter(row[0], [row[order.index(r)] for r in range(size)], op=reduce_op)
        same("reduce_scatter in a row " + about, row[0], reduced(theirs[rank], op))

    counts = [[draw.randint(0, 4) for _ in range(size)] for _ in range(size)]  # rows from, to
    rows = [torch.full((counts[rank][to], 3), rank * 10 + to).to(dtype) for to in range(size)]
    out = torch.empty((sum(counts[r][rank] for r in range(size)), 3), dtype=dtype)
    dist.all_to_all_single(out, torch.cat(rows), [counts[r][rank] for r in range(size)], counts[rank])
    same("all_to_all_single with splits " + about, out, torch.cat([torch.full((counts[r][rank], 3), r * 10 + rank).to(dtype) for r in range(size)]))

    t = [mine.clone(), filled(s, dtype, rank + 50)]
    second = reduced(all_of(t[1], gloo), op)
    dist.all_reduce_coalesced(t, op=reduce_op)
    same("all_reduce_coalesced " + about, t, [total, second])

    out = [[torch.empty(s, dtype=dtype) for _ in range(2)] for _ in range(size)]
    dist.all_gather_coalesced(out, [mine, mine])
    same("all_gather_coalesced " + about, [x for pair in out for x in pair], [x for x in every for _ in range(2)])

    # Messages round the ring, both ways at once, and from anyone.
    right, left = (rank + 1) % size, (rank - 1) % size
    a, b = torch.empty(s, dtype=dtype), torch.empty(s, dtype=dtype)
    going = [dist.irecv(a, left, tag=1), dist.irecv(b, right, tag=2), dist.isend(mine, right, tag=1), dist.isend(mine, left, tag=2)]
    for w in going:
        w.wait()
    same("messages " + about, [a, b], [every[left], every[right]])
    if rank == 0:
        seen = []
        for _ in range(size - 1):
            seen.append(dist.recv(a))
            same("recv from anyone " + about, a, every[seen[-1]])
        assert sorted(seen) == list(range(1, size)), seen
    else:
        dist.send(mine, 0)
    dist.barrier()


def collectives():
    gloo = join()
    for i in range(int(os.environ.get("ROUNDS", "12"))):
        one(gloo, i)

    # Several on their way, ended in any order, also by their futures.
    tensors = [torch.full((draw.randint(1, 5000),), float(rank + i)) for i in range(20)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    futures = [w.get_future() for w in works[:10]]
    told = [f.then(lambda f: f.value()[0] * 1) for f in futures]
    order = list(range(20))
    draw.shuffle(order)
    for i in order:
        works[i].wait()
    for i, t in enumerate(tensors):
        same("several", t, torch.full_like(t, sum(range(size)) + i * size))
    for i, f in enumerate(told):
        same("future", f.wait(), tensors[i])

    def more(future):
        dist.all_reduce(future.value()[0])
        return future.value()

    t = torch.ones(3)
    same("a call in a callback", dist.all_reduce(t, async_op=True).get_future().then(more).wait()[0], torch.full((3,), float(size * size)))
    dist.barrier()

    # Groups, that overlap too.
    groups = [[0, size - 1], list(range(size)), [size - 1]]
    for ranks, group in [(sorted(set(r)), dist.new_group(sorted(set(r)))) for r in groups]:
        if rank in ranks:
            t = torch.tensor([rank])
            dist.all_reduce(t, group=group)
            same("group", t, torch.tensor([sum(ranks)]))
            dist.destroy_process_group(group)

    for bad, why in [
        (lambda: dist.all_reduce(torch.ones(2, 2).to_sparse()), "dense tensors on the CPU"),
        (lambda: dist.all_reduce(torch.ones(2), op=dist.ReduceOp.BAND), "ReduceOp.BAND of Float"),
        (lambda: dist.all_reduce(torch.ones(2, dtype=torch.int32), op=dist.ReduceOp.AVG), "ReduceOp.AVG of Int"),
        (lambda: dist.broadcast(torch.ones(2), size), "root" if size > 0 else ""),
    ]:
        try:
            bad()
        except (ValueError, RuntimeError) as e:
            assert why in str(e) or "rank" in str(e), e
        else:
            raise AssertionError(f"no error with {why}")

    again()


def again():
    """Leaves the job and joins another by the same store."""
    for i in range(2):
        dist.destroy_process_group()
        dist.init_process_group("tierflow", init_method=f"{init_method}{i}" if init_method.startswith("file") else init_method, rank=rank, world_size=size)
        t = torch.ones(3)
        dist.all_reduce(t)
        same("again", t, torch.full((3,), float(size)))
    print("well")


def training():
    """A tiny model, by both backends: the losses are the same to rounding."""
    gloo = join()
    losses = {}
    for name, group in ("tierflow", None), ("gloo", gloo):
        torch.manual_seed(5)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        model = torch.nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.0005)
        steps = torch.optim.SGD(model.parameters(), lr=0.1)
        data = torch.Generator().manual_seed(rank)
        losses[name] = []
        for _ in range(10):
            x = torch.rand(4, 8, generator=data)
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
            steps.zero_grad()
            loss.backward()
            steps.step()
            losses[name].append(loss.detach())
    assert losses["gloo"][0] > losses["gloo"][-1], losses
    same("losses", losses["tierflow"], losses["gloo"])
    print("well")


def failure(call):
    try:
        call()
    except RuntimeError as e:
        print(e)
    else:
        raise AssertionError("no error")


def killed():
    join()
    t = torch.ones(1000)
    if rank == 1:
        dist.all_reduce(t)
        os.kill(os.getpid(), signal.SIGKILL)
    failure(lambda: [dist.all_reduce(t) for _ in range(2)])


def raising():
    join()
    if rank == 1:
        raise ZeroDivisionError("of the test")
    failure(lambda: dist.all_reduce(torch.ones(4)))


def disagreeing():
    join()
    failure(lambda: dist.all_reduce(torch.ones(5 if rank == 1 else 4)))


def late():
    """Rank 1 comes to a call when the others have given up."""
    gloo = join()
    g = dist.new_group([0, 1], timeout=timedelta(seconds=3))
    if rank == 0:
        failure(lambda: dist.all_reduce(torch.ones(4), group=g))
    dist.barrier(group=gloo)
    if rank == 1:  # the first call may end with what rank 0 had sent
        failure(lambda: [dist.all_reduce(torch.ones(4), group=g) for _ in range(2)])
    t = torch.ones(4)
    dist.all_reduce(t)  # other groups go on
    same("afterwards", t, torch.full((4,), float(size)))
    pair = dist.new_group([1, 2], timeout=timedelta(seconds=3))
    if rank == 2:
        try:
            dist.all_reduce(t, group=pair)
        except RuntimeError as e:
            assert " timeout of 3000 ms: " in str(e) and "rank 0 has not come" in str(e) and "of the job's ranks 1 2" in str(e), e
        else:
            raise AssertionError("no error")
        work = dist.irecv(t, 1)
        try:
            work.wait(timedelta(milliseconds=100))
        except RuntimeError as e:
            assert "rank 2: the receive of 4 Float from rank 1, tag 0, has waited 100 ms, and goes on" in str(e), e
        else:
            raise AssertionError("no error")
        dist.barrier(group=gloo)
        work.wait()
    else:
        dist.barrier(group=gloo)
        if rank == 1:
            dist.send(t, 2)


def missing():
    """Rank 1 never joins. The others begin together."""
    if rank != 1:
        here = dist.FileStore(init_method.removeprefix("file://") + "-here", size)
        here.set(str(rank), "here")
        here.wait(["0", "2"])
        failure(lambda: join(3))


{f.__name__: f for f in (collectives, again, training, killed, raising, disagreeing, late, missing)}[what]()
