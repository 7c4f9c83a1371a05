#!/usr/bin/env python3
"""Makes torch_net.safetensors, the state dict of a small net as PyTorch has it, and
torch_net_io.safetensors, an input and the logits that PyTorch computes from it in inference.

The net has what may go wrong on the way: an image that is not square, filters of more channels than
one, groups, a batch norm with its running statistics, and a linear layer behind a flatten.
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


def main():
    torch.manual_seed(1)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=1, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(8, 12, 3, padding=1, groups=2), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(12 * 3 * 2, 5))
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
