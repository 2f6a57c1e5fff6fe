"""Two processes train one network with DistributedDataParallel, each on a GPU of its own.

Each has a monitor of its GPU and an optimiser; they agree on one power limit through
torch.distributed (gloo here, NCCL on real GPUs): energies are summed, the slowest rank counts.
"""

from __future__ import annotations

import argparse

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.nn.parallel import DistributedDataParallel
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"this example trains with torch, which is not installed ({missing}): apt install "
        "python3-torch, or pip install torch; examples/train.py needs no package"
    ) from None

import zeus.sim
from digits import Learner
from zeus.monitor import ZeusMonitor
from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", default="V100", help="model to simulate (default: %(default)s)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=8)
    return parser.parse_args()


def train(rank: int, args: argparse.Namespace, port: int) -> None:
    store = dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=args.ranks)
    monitor = ZeusMonitor(gpu_indices=[rank], cpu_indices=[])
    optimizer = GlobalPowerLimitOptimizer(monitor, warmup_steps=2, profile_steps=6)
    gpu = zeus.sim.attach().run("resnet50", batch_size=256, gpus=[rank])
    learner = Learner(batch_size=64)
    learner.model = DistributedDataParallel(learner.model)

    for epoch in range(1, args.epochs + 1):
        optimizer.on_epoch_begin()
        with monitor.window("epoch") as window:
            for batch in learner.batches(rank, args.ranks):
                optimizer.on_step_begin()
                gpu.step(lambda: learner.step(batch))
                optimizer.on_step_end()
        optimizer.on_epoch_end()
        energy = torch.tensor(window.measurement.total_energy, dtype=torch.float64)
        dist.all_reduce(energy)
        if rank == 0:
            print(f"epoch {epoch}: accuracy {learner.accuracy():.3f}, all GPUs {energy:.0f} J")

    if optimizer.optimal_power_limit is None:  # It is None on all ranks or on none.
        raise SystemExit("limits are still being tried: train longer (--epochs)")
    savings = optimizer.savings()  # All ranks must call it, because it covers all of them.
    optimizer.on_train_end()
    print(f"rank {rank}: chose {optimizer.optimal_power_limit} W")
    if rank == 0:
        print(f"saved: {savings}")
    dist.destroy_process_group()


def main() -> None:
    args = parse()
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with zeus.sim.here(f"{args.ranks}x{args.gpu}", time_scale=10) as node:
        if len(node.truth()) < args.ranks:
            raise SystemExit(f"the simulated node has {len(node.truth())} GPUs: give --ranks")
        mp.spawn(train, (args, store.port), nprocs=args.ranks)


if __name__ == "__main__":
    main()
