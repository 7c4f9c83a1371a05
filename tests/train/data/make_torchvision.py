#!/usr/bin/env python3
"""Prints what torchvision_test.cpp expects of torchvision's nets: for each net the number of its
tensors and of its parameters and a hash of all names and shapes; and the first logits of two
images in inference, with weights and images made by the formula in `values`. Counters of batch
norms (num_batches_tracked) are left out.
"""
import numpy
import torch
import torchvision
from torchvision.models import vgg


def noise(number, count):
    """`count` numbers in [-0.5, 0.5), others for every `number`."""
    bits = (numpy.arange(count, dtype=numpy.uint64) * 2654435761 + number * 40503 + 12345) % 2**32
    bits ^= bits >> 15
    bits = bits * 2246822519 % 2**32
    bits ^= bits >> 13
    return bits / 2.0**32 - 0.5


def values(number, name, shape):
    x = noise(number, int(numpy.prod(shape)))
    if len(shape) > 1:  # He's variance: 2 / fan_in
        x *= numpy.sqrt(24.0 / numpy.prod(shape[1:]))
    elif name.endswith("weight") or name.endswith("var"):  # of a batch norm
        x += 1
    else:
        x *= 0.1
    return torch.tensor(x.reshape(shape), dtype=torch.float32)


def tensors(net):
    return {k: v for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}


def hash_of(text):
    h = 0xcbf29ce484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001b3 % 2**64
    return h


def print_names(net, name):
    lines = "".join(f"{k} {list(v.shape)}\n" for k, v in tensors(net).items())
    print(f"{name}: {len(tensors(net))} tensors, {sum(p.numel() for p in net.parameters())} parameters, "
          f"hash {hash_of(lines):#018x}")


def set_values(net):
    state = {k: values(i, k, tuple(v.shape)) for i, (k, v) in enumerate(tensors(net).items())}
    net.load_state_dict(state, strict=False)
    return net.eval()


def images(size):
    return torch.tensor(4 * noise(1000, 6 * size[0] * size[1]).reshape(2, 3, *size), dtype=torch.float32)


def print_logits(net, name, size):
    with torch.no_grad():
        logits = set_values(net)(images(size))
    print(f"{name} {size}: {', '.join(f'{x:.8g}' for x in logits.flatten().tolist())}")


def narrow_vgg(depth, batch_norm):
    """VGG with a sixteenth of the filters, 24 hidden values and 5 classes."""
    layers = [c if c == "M" else c // 16 for c in vgg.cfgs[{11: "A", 13: "B", 16: "D", 19: "E"}[depth]]]
    net = vgg.VGG(torch.nn.Identity(), init_weights=False)
    net.features = vgg.make_layers(layers, batch_norm=batch_norm)
    net.classifier = torch.nn.Sequential(
        torch.nn.Linear(32 * 7 * 7, 24), torch.nn.ReLU(), torch.nn.Dropout(),
        torch.nn.Linear(24, 24), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(24, 5))
    return net


def narrow_inception():
    """Inception-v3 with an eighth of the filters and 5 classes."""
    blocks = torchvision.models.inception

    def narrow(inputs, outputs, **how):
        return blocks.BasicConv2d(inputs if inputs == 3 else inputs // 8, outputs // 8, **how)

    def narrow_block(block):
        return lambda *sizes, **how: block(*sizes, conv_block=narrow, **how)

    def auxiliary(inputs, classes):
        block = blocks.InceptionAux(inputs, classes, conv_block=narrow)
        block.fc = torch.nn.Linear(768 // 8, classes)
        return block

    names = "InceptionA", "InceptionB", "InceptionC", "InceptionD", "InceptionE"
    net = blocks.Inception3(
        num_classes=5, init_weights=False,
        inception_blocks=[narrow] + [narrow_block(getattr(blocks, name)) for name in names] + [auxiliary])
    net.fc = torch.nn.Linear(2048 // 8, 5)
    return net


def print_inception_loss(size):
    """The sum of the two losses for the labels 1 and 3, without dropout."""
    net = set_values(narrow_inception())
    inputs = []
    net.Mixed_6e.register_forward_hook(lambda m, i, output: inputs.append(output))
    with torch.no_grad():
        logits = [net(images(size)), net.AuxLogits(inputs[0])]
    losses = [torch.nn.functional.cross_entropy(x, torch.tensor([1, 3])).item() for x in logits]
    print(f"inception {size}: loss {losses[0] + 0.4 * losses[1]:.8g} of {losses}")


def print_googlenet_loss(size):
    """The sum of the three losses for the labels 1 and 3, without dropout."""
    net = set_values(torchvision.models.googlenet(num_classes=5, init_weights=False))
    inputs = {}
    for layer in "inception4a", "inception4d":
        getattr(net, layer).register_forward_hook(lambda m, i, output, layer=layer: inputs.update({layer: output}))
    with torch.no_grad():
        logits = [net(images(size)), net.aux1(inputs["inception4a"]), net.aux2(inputs["inception4d"])]
    losses = [torch.nn.functional.cross_entropy(x, torch.tensor([1, 3])).item() for x in logits]
    print(f"googlenet {size}: loss {losses[0] + 0.3 * (losses[1] + losses[2]):.8g} of {losses}")


def main():
    for depth in 11, 13, 16, 19:
        for suffix in "", "_bn":
            name = f"vgg{depth}{suffix}"
            print_names(getattr(torchvision.models, name)(init_weights=False), name)
    print_logits(narrow_vgg(11, False), "vgg11", (48, 80))
    print_logits(narrow_vgg(16, True), "vgg16_bn", (224, 224))
    print_logits(narrow_vgg(19, False), "vgg19", (48, 80))
    print_names(torchvision.models.googlenet(init_weights=False), "googlenet")
    print_logits(torchvision.models.googlenet(num_classes=5, init_weights=False), "googlenet", (45, 62))
    print_googlenet_loss((45, 62))
    print_names(torchvision.models.inception_v3(init_weights=False), "inception_v3")
    for size in (75, 75), (139, 112), (299, 299):
        print_logits(narrow_inception(), "inception_v3", size)
    print_inception_loss((299, 299))


if __name__ == "__main__":
    main()
