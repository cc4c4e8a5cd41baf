"""A small language model learns the letters of a folder of text, by DistributedDataParallel.

    torchrun --nproc_per_node 2 train.py --backend tierflow TEXT_FOLDER

gloo in the place of tierflow gives the same losses. Rank 0 prints one every ten steps: bits a letter, of all ranks.
"""
import argparse
import pathlib
import time

import torch
import torch.distributed as dist
from torch import nn

CONTEXT = 32  # letters before the one to be guessed


def main():
    args = argparse.ArgumentParser()
    args.add_argument("folder", help="with the text, *.md")
    args.add_argument("--backend", default="tierflow", help="tierflow or gloo")
    args.add_argument("--steps", type=int, default=200)
    args.add_argument("--width", type=int, default=256, help="of the hidden layers")
    args = args.parse_args()

    if args.backend == "tierflow":
        import tierflow_torch  # noqa: F401: registers the backend
    dist.init_process_group(args.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(1)  # the same model on all ranks

    text = b"".join(p.read_bytes() for p in sorted(pathlib.Path(args.folder).glob("*.md")))
    letters = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    model = nn.Sequential(
        nn.Embedding(256, 16), nn.Flatten(), nn.Linear(16 * CONTEXT, args.width), nn.ReLU(),
        nn.Linear(args.width, args.width), nn.ReLU(), nn.Linear(args.width, 256))
    model = nn.parallel.DistributedDataParallel(model)
    descent = torch.optim.Adam(model.parameters(), lr=2e-3)
    draw = torch.Generator().manual_seed(100 + rank)  # each rank has other letters

    begin = time.perf_counter()
    for step in range(1, args.steps + 1):
        at = torch.randint(len(letters) - CONTEXT, (64,), generator=draw)
        batch = letters[at[:, None] + torch.arange(CONTEXT + 1)]
        loss = nn.functional.cross_entropy(model(batch[:, :-1]), batch[:, -1])
        descent.zero_grad()
        loss.backward()  # averages the gradients of all ranks meanwhile
        descent.step()
        if step % 10 == 0:
            loss = loss.detach() / torch.log(torch.tensor(2.0))
            dist.all_reduce(loss)
            if rank == 0:
                print(f"step {step}: {loss.item() / size:.4f} bits", flush=True)
    if rank == 0:
        print(f"{(time.perf_counter() - begin) / args.steps * 1000:.1f} ms a step")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
