#!/usr/bin/env python3
"""The step of bench_step, done by PyTorch: forward, backward, SGD with momentum, on random data.

Prints one JSON object like `bench_step --json`. Of PyTorch's two ways on the CPU, with and without
oneDNN, the faster one counts.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn

MODELS = {
    "mnist_mlp": (
        lambda: nn.Sequential(
            nn.Flatten(), nn.Linear(784, 500), nn.ReLU(True), nn.Linear(500, 500), nn.ReLU(True),
            nn.Linear(500, 10)),
        (1, 28, 28), 10),
}


def step_times(options, use_mkldnn):
    """Milliseconds of each step after warm-up."""
    make, image, classes = MODELS[options.model]
    torch.manual_seed(1)
    model, loss = make(), nn.CrossEntropyLoss()
    sgd = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x = torch.randn(options.batch, *image)
    y = torch.randint(classes, (options.batch,))
    times = []
    with torch.backends.mkldnn.flags(enabled=use_mkldnn):
        for _ in range(options.warmup + options.iterations):
            begin = time.perf_counter()
            sgd.zero_grad()
            loss(model(x), y).backward()
            sgd.step()
            times.append(1e3 * (time.perf_counter() - begin))
    return times[options.warmup:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, default="mnist_mlp")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    runs = [step_times(options, use_mkldnn) for use_mkldnn in (False, True)]
    median = min(statistics.median(times) for times in runs)
    print(json.dumps({"torch": torch.__version__, "median_ms": median}))


if __name__ == "__main__":
    main()
