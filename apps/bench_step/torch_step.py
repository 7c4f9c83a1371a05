#!/usr/bin/env python3
"""bench_step's training step in PyTorch: forward, backward, SGD with momentum, on random data.

Prints one JSON object like `bench_step --json`. The fastest of PyTorch's ways counts: on the CPU with
and without oneDNN, each in a process of its own, so that its peak memory shows; on a GPU as a CUDA
graph of eager kernels and compiled by torch.compile, with and without a graph, channels last.
"""
import argparse
import json
import multiprocessing
import resource
import statistics
import time

import torch
from torch import nn


def mnist_mlp(classes):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 500), nn.ReLU(True), nn.Linear(500, 500), nn.ReLU(True),
        nn.Linear(500, classes))


def cifar_cnn(classes):
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2), nn.ReLU(True), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(True), nn.AvgPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(True), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(True), nn.Linear(64, classes))


def alexnet(classes):
    features = nn.Sequential(
        nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(True), nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(True), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(True),
        nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(True),
        nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(3, 2))
    classifier = nn.Sequential(
        nn.Dropout(), nn.Linear(9216, 4096), nn.ReLU(True),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(True), nn.Linear(4096, classes))
    return nn.Sequential(features, nn.Flatten(), classifier)


def conv_norm(inputs, outputs, window, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, window, stride, padding=window // 2, bias=False),
        nn.BatchNorm2d(outputs))


class ResidualBlock(nn.Module):
    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        if bottleneck:
            self.body = nn.Sequential(
                conv_norm(inputs, width, 1), nn.ReLU(True),
                conv_norm(width, width, 3, stride), nn.ReLU(True), conv_norm(width, outputs, 1))
        else:
            self.body = nn.Sequential(
                conv_norm(inputs, width, 3, stride), nn.ReLU(True), conv_norm(width, width, 3))
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else conv_norm(inputs, outputs, 1, stride)
        self.relu = nn.ReLU(True)

    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))


def resnet(stem, width, blocks, bottleneck, classes):
    layers, inputs = list(stem), width
    for stage, count in enumerate(blocks):
        for i in range(count):
            stride = 2 if stage > 0 and i == 0 else 1
            layers.append(ResidualBlock(inputs, width << stage, stride, bottleneck))
            inputs = (width << stage) * (4 if bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def imagenet_resnet(blocks, bottleneck, classes):
    stem = conv_norm(3, 64, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)
    return resnet(stem, 64, blocks, bottleneck, classes)


def cifar_resnet(n, classes):
    return resnet((conv_norm(3, 16, 3), nn.ReLU(True)), 16, (n, n, n), False, classes)


VGG_STAGES = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def vgg_features(depth):
    layers, inputs = [], 3
    for stage, count in enumerate(VGG_STAGES[depth]):
        width = min(64 << stage, 512)
        for _ in range(count):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(True)]
            inputs = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten())


def vgg(depth, classes):
    return nn.Sequential(
        vgg_features(depth), nn.Linear(25088, 4096), nn.ReLU(True), nn.Dropout(),
        nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, classes))


def cifar_vgg(depth, classes):
    return nn.Sequential(vgg_features(depth), nn.Linear(512, classes))


class BasicConv(nn.Sequential):
    """A window is a number or (height, width). By default the image keeps its size at stride 1."""

    def __init__(self, inputs, outputs, window, stride=1, padding=None):
        if padding is None:
            padding = window // 2 if isinstance(window, int) else (window[0] // 2, window[1] // 2)
        super().__init__(
            nn.Conv2d(inputs, outputs, window, stride, padding, bias=False),
            nn.BatchNorm2d(outputs, eps=0.001), nn.ReLU(True))


class Inception(nn.Module):
    def __init__(self, inputs, one, reduce3, three, reduce5, five, pool):
        super().__init__()
        self.branches = nn.ModuleList([
            BasicConv(inputs, one, 1),
            nn.Sequential(BasicConv(inputs, reduce3, 1), BasicConv(reduce3, three, 3)),
            nn.Sequential(BasicConv(inputs, reduce5, 1), BasicConv(reduce5, five, 3)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), BasicConv(inputs, pool, 1))])

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def auxiliary(inputs, classes):
    return nn.Sequential(
        nn.AdaptiveAvgPool2d(4), BasicConv(inputs, 128, 1), nn.Flatten(), nn.Linear(2048, 1024),
        nn.ReLU(True), nn.Dropout(0.7), nn.Linear(1024, classes))


class GoogLeNet(nn.Module):
    """Returns the logits of all three classifiers."""

    auxiliary_weight = 0.3

    def __init__(self, classes):
        super().__init__()
        self.first = nn.Sequential(
            BasicConv(3, 64, 7, 2), nn.MaxPool2d(3, 2, ceil_mode=True), BasicConv(64, 64, 1),
            BasicConv(64, 192, 3), nn.MaxPool2d(3, 2, ceil_mode=True),
            Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64),
            nn.MaxPool2d(3, 2, ceil_mode=True), Inception(480, 192, 96, 208, 16, 48, 64))
        self.second = nn.Sequential(
            Inception(512, 160, 112, 224, 24, 64, 64), Inception(512, 128, 128, 256, 24, 64, 64),
            Inception(512, 112, 144, 288, 32, 64, 64))
        self.third = nn.Sequential(
            Inception(528, 256, 160, 320, 32, 128, 128), nn.MaxPool2d(2, 2, ceil_mode=True),
            Inception(832, 256, 160, 320, 32, 128, 128), Inception(832, 384, 192, 384, 48, 128, 128),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1024, classes))
        self.auxiliary = nn.ModuleList([auxiliary(512, classes), auxiliary(528, classes)])

    def forward(self, x):
        first = self.first(x)
        second = self.second(first)
        return self.third(second), self.auxiliary[0](first), self.auxiliary[1](second)


class Fork(nn.Module):
    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def convs(inputs, *units):
    """Convolutions one after the other: (outputs, window, stride, padding), the last two optional."""
    layers = []
    for outputs, *how in units:
        layers.append(BasicConv(inputs, outputs, *how))
        inputs = outputs
    return nn.Sequential(*layers)


def smooth(inputs, outputs):
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), BasicConv(inputs, outputs, 1))


def inception_a(inputs, pool):
    return Fork(BasicConv(inputs, 64, 1), convs(inputs, (48, 1), (64, 5)),
                convs(inputs, (64, 1), (96, 3), (96, 3)), smooth(inputs, pool))


def inception_b(inputs):
    return Fork(BasicConv(inputs, 384, 3, 2, 0), convs(inputs, (64, 1), (96, 3), (96, 3, 2, 0)), nn.MaxPool2d(3, 2))


def inception_c(inputs, width):
    row, column = (1, 7), (7, 1)
    return Fork(BasicConv(inputs, 192, 1), convs(inputs, (width, 1), (width, row), (192, column)),
                convs(inputs, (width, 1), (width, column), (width, row), (width, column), (192, row)),
                smooth(inputs, 192))


def inception_d(inputs):
    return Fork(convs(inputs, (192, 1), (320, 3, 2, 0)),
                convs(inputs, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2, 0)), nn.MaxPool2d(3, 2))


def inception_e(inputs):
    def spread():
        return Fork(BasicConv(384, 384, (1, 3)), BasicConv(384, 384, (3, 1)))

    return Fork(BasicConv(inputs, 320, 1), nn.Sequential(BasicConv(inputs, 384, 1), spread()),
                nn.Sequential(convs(inputs, (448, 1), (384, 3)), spread()), smooth(inputs, 192))


class InceptionV3(nn.Module):
    """Returns the logits of both classifiers."""

    auxiliary_weight = 0.4

    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(
            BasicConv(3, 32, 3, 2, 0), BasicConv(32, 32, 3, 1, 0), BasicConv(32, 64, 3), nn.MaxPool2d(3, 2),
            BasicConv(64, 80, 1), BasicConv(80, 192, 3, 1, 0), nn.MaxPool2d(3, 2),
            inception_a(192, 32), inception_a(256, 64), inception_a(288, 64), inception_b(288),
            inception_c(768, 128), inception_c(768, 160), inception_c(768, 160), inception_c(768, 192))
        self.tail = nn.Sequential(
            inception_d(768), inception_e(1280), inception_e(2048), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Dropout(0.5), nn.Linear(2048, classes))
        self.auxiliary = nn.Sequential(
            nn.AvgPool2d(5, 3), BasicConv(768, 128, 1), BasicConv(128, 768, 5, 1, 0), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(768, classes))

    def forward(self, x):
        middle = self.body(x)
        return self.tail(middle), self.auxiliary(middle)


# The function that makes the model, the image, the classes, and the default batch.
MODELS = {
    "mnist_mlp": (mnist_mlp, (1, 28, 28), 10, 100),
    "cifar_cnn": (cifar_cnn, (3, 32, 32), 100, 100),
    "alexnet": (alexnet, (3, 224, 224), 1000, 16),
    "resnet18": (lambda c: imagenet_resnet((2, 2, 2, 2), False, c), (3, 224, 224), 1000, 8),
    "resnet50": (lambda c: imagenet_resnet((3, 4, 6, 3), True, c), (3, 224, 224), 1000, 4),
    "resnet20": (lambda c: cifar_resnet(3, c), (3, 32, 32), 10, 128),
    "googlenet": (GoogLeNet, (3, 224, 224), 1000, 8),
    "inception": (InceptionV3, (3, 299, 299), 1000, 4),
    "vgg16": (lambda c: vgg(16, c), (3, 224, 224), 1000, 4),
    "vgg19": (lambda c: vgg(19, c), (3, 224, 224), 1000, 4),
    "vgg16_cifar": (lambda c: cifar_vgg(16, c), (3, 32, 32), 10, 64),
}


def set_precision(precision):
    """On a GPU, sets whether f32 may be rounded to tf32."""
    torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.allow_tf32 = precision != "fp32"


def step_of(model, sgd, x, y, bf16):
    """Returns a function that makes one step."""
    cross_entropy = nn.CrossEntropyLoss()

    def loss(logits):
        if isinstance(logits, tuple):  # the auxiliary classifiers count less
            others = sum(cross_entropy(auxiliary, y) for auxiliary in logits[1:])
            return cross_entropy(logits[0], y) + model.auxiliary_weight * others
        return cross_entropy(logits, y)

    def step():
        sgd.zero_grad(set_to_none=True)
        with torch.autocast(x.device.type, torch.bfloat16, enabled=bf16):
            result = loss(model(x))
        result.backward()
        sgd.step()

    return step


def step_times(model, sgd, x, y, options):
    """Milliseconds of each step after warm-up, by the host's clock."""
    step = step_of(model, sgd, x, y, options.precision == "bf16")
    times = []
    for _ in range(options.warmup + options.iterations):
        begin = time.perf_counter()
        step()
        if x.is_cuda:
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return times[options.warmup:]


def measure(options, use_mkldnn):
    """Returns the median ms per step after warm-up, the number of parameters and the peak memory in MB."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    make, image, classes, batch = MODELS[options.model]
    batch = options.batch or batch
    model = make(classes)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x = torch.randn(batch, *image)
    y = torch.randint(classes, (batch,))
    with torch.backends.mkldnn.flags(enabled=use_mkldnn):
        times = step_times(model, sgd, x, y, options)
    return {"median_ms": statistics.median(times),
            "parameters": sum(p.numel() for p in model.parameters()),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}


def as_graph(step):
    """The same, recorded once and replayed."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def time_on_gpu(step, options):
    """Returns the median ms per step, ten steps at a time, by the GPU's clock."""
    for _ in range(options.warmup):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(0, options.iterations, 10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(10):
            step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 10)
    return statistics.median(times)


def measure_on_gpu(options):
    make, image, classes, batch = MODELS[options.model]
    batch = options.batch or batch
    torch.backends.cudnn.benchmark = True
    set_precision(options.precision)
    x = torch.randn(batch, *image, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(classes, (batch,), device="cuda")
    modes = {}
    for mode in options.modes.split(","):
        torch.manual_seed(1)
        model = make(classes).cuda().to(memory_format=torch.channels_last)
        if "compile" in mode:
            torch._dynamo.reset()
            model = torch.compile(model)
        sgd = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
        step = step_of(model, sgd, x, y, options.precision == "bf16")
        for _ in range(3):
            step()
        modes[mode] = time_on_gpu(as_graph(step) if "graph" in mode else step, options)
        del model, sgd, step
        torch.cuda.empty_cache()
    best = min(modes, key=modes.get)
    return {"median_ms": modes[best], "mode": best, "modes": modes,
            "device_memory_mb": torch.cuda.max_memory_allocated() / 1e6}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, default="mnist_mlp")
    parser.add_argument("--batch", type=int, help="the default depends on the model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32")
    parser.add_argument("--modes", default="graph,compile,compile+graph",
                        help="on a GPU: some of eager, graph, compile, compile+graph")
    options = parser.parse_args()
    if options.device == "cuda":
        print(json.dumps({"torch": torch.__version__, **measure_on_gpu(options)}))
        return
    runs = []
    for use_mkldnn in (False, True):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            runs.append(pool.apply(measure, (options, use_mkldnn)))
    best = min(runs, key=lambda run: run["median_ms"])
    print(json.dumps({"torch": torch.__version__, **best}))


if __name__ == "__main__":
    main()
