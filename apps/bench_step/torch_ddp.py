#!/usr/bin/env python3
"""MNIST-MLP trained by PyTorch's DistributedDataParallel over gloo, on random data; one process per worker.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment say who is who. The first process prints one
JSON object with the median of its iterations.
"""
import argparse
import json
import statistics

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from torch_step import mnist_mlp, step_times


def measure(options):
    """Milliseconds of each iteration after warm-up."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(1 + dist.get_rank())
    model = DistributedDataParallel(mnist_mlp(10))
    if options.compress == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    sgd = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    share = options.batch // dist.get_world_size()
    x, y = torch.randn(share, 1, 28, 28), torch.randint(10, (share,))
    return step_times(model, sgd, x, y, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=100, help="of all workers together; they divide it evenly")
    parser.add_argument("--compress", choices=["none", "fp16"], default="none")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=20)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    times = measure(options)
    dist.barrier()
    if dist.get_rank() == 0:
        print(json.dumps({"torch": torch.__version__, "median_ms": statistics.median(times)}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
