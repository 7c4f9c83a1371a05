#!/usr/bin/env python3
"""Makes torch_net.safetensors, the state dict of a small net as PyTorch has it, and
torch_net_io.safetensors, an input and the logits that PyTorch computes from it in inference.

The net has what may go wrong on the way: an image that is not square, filters of more channels than
one, groups, batch norms with their running statistics, both residual blocks with shortcuts, named as
torchvision names them, and a linear layer behind a flatten.
torch_net_test.cpp reads both. No library writes the files, so that PyTorch is all that is needed.
"""
import json
import pathlib
import struct

import torch
from torch import nn


def write_safetensors(path, tensors):
    dtypes = {torch.float32: "F32", torch.int64: "I64"}
    header, data = {}, b""
    for name, tensor in tensors.items():
        content = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": dtypes[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Block(nn.Module):
    """torchvision's BasicBlock, or its Bottleneck if there is a third convolution."""

    def __init__(self, channels, windows, stride):
        super().__init__()
        self.count = len(windows)
        for i, window in enumerate(windows, 1):
            strided = stride if window == 3 and not any(w == 3 for w in windows[:i - 1]) else 1
            setattr(self, f"conv{i}", nn.Conv2d(channels[i - 1], channels[i], window, strided, window // 2, bias=False))
            setattr(self, f"bn{i}", nn.BatchNorm2d(channels[i]))
        self.downsample = nn.Sequential(
            nn.Conv2d(channels[0], channels[-1], 1, stride, bias=False), nn.BatchNorm2d(channels[-1]))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.count:
                y = torch.relu(y)
        return torch.relu(y + self.downsample(x))


def main():
    torch.manual_seed(1)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=1, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(8, 12, 3, padding=1, groups=2), nn.ReLU(),
        Block([12, 16, 16], [3, 3], stride=1), Block([16, 4, 4, 16], [1, 3, 1], stride=2),
        nn.Flatten(), nn.Linear(16 * 3 * 2, 5))
    # Some steps of training, so that nothing has its initial value.
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        sgd.zero_grad()
        nn.functional.cross_entropy(net(2 * torch.randn(16, 3, 12, 8) + 1), torch.randint(5, (16,))).backward()
        sgd.step()
    net.eval()
    images = torch.randn(4, 3, 12, 8)
    with torch.no_grad():
        logits = net(images)
    here = pathlib.Path(__file__).parent
    write_safetensors(here / "torch_net.safetensors", net.state_dict())
    write_safetensors(here / "torch_net_io.safetensors", {"images": images, "logits": logits})


if __name__ == "__main__":
    main()
