#!/usr/bin/env python3
"""Trains a net with PyTorch's DistributedDataParallel over gloo, on random data, with one process per worker.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment identify the process (torchrun sets them). The first
process prints one JSON object with the mean and the median of its iterations. With --device cuda all share one GPU.
"""
import argparse
import json
import statistics

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from torch_step import MODELS, set_precision, step_times


def measure(options):
    """Milliseconds of each iteration after warm-up."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(1 + dist.get_rank())
    torch.backends.cudnn.benchmark = True
    set_precision(options.precision)
    make, image, classes, _ = MODELS[options.model]
    model = DistributedDataParallel(make(classes).to(options.device))
    if options.compress == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    sgd = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    share = options.batch // dist.get_world_size()
    x = torch.randn(share, *image, device=options.device)
    y = torch.randint(classes, (share,), device=options.device)
    return step_times(model, sgd, x, y, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, default="mnist_mlp")
    parser.add_argument("--batch", type=int, default=100, help="global batch, divided evenly among the workers")
    parser.add_argument("--compress", choices=["none", "fp16"], default="none")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    times = measure(options)
    dist.barrier()
    if dist.get_rank() == 0:
        print(json.dumps({"torch": torch.__version__, "mean_ms": statistics.mean(times),
                          "median_ms": statistics.median(times)}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
