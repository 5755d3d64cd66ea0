"""Rows of whole models: inference, and training steps; beside torch with both of its layouts of pictures."""
import copy
from functools import partial

import numpy as np
from protocol import Case

# issue 5: (name, model, batch, image size, train, at most so many times the time of each)
MODELS = (
    ("ResNet-18 inference, batch 1", "resnet18", 1, 224, False, {"torch": 0.90}),
    ("ResNet-18 inference, batch 16", "resnet18", 16, 224, False, {"torch": 0.60, "channels_last": 0.75}),
    ("ResNet-50 inference, batch 16", "resnet50", 16, 224, False, {"torch": 0.80}),
    ("VGG-16 inference, batch 4", "vgg16", 4, 224, False, {"torch": 0.65}),
    ("CIFAR ResNet-20 train step, batch 64", "resnet20", 64, 32, True, {"torch": 1.10}),
    ("ResNet-18 train step, batch 16", "resnet18", 16, 224, True, {"torch": 0.90}),
)


def cifar_resnet20(nn):
    """He et al. 2015, section 4.2, with 1x1 shortcuts; the same modules, in the same order, of either library."""
    def block(c, k, stride):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv1, self.bn1 = nn.Conv2d(c, k, 3, stride, 1, bias=False), nn.BatchNorm2d(k)
                self.conv2, self.bn2 = nn.Conv2d(k, k, 3, 1, 1, bias=False), nn.BatchNorm2d(k)
                self.relu = nn.ReLU()
                shortcut = nn.Sequential(nn.Conv2d(c, k, 1, stride, bias=False), nn.BatchNorm2d(k))
                self.shortcut = nn.Identity() if stride == 1 else shortcut

            def forward(self, x):
                y = self.relu(self.bn1(self.conv1(x)))
                return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))
        return Block()

    blocks = [block(c, k, s) for c, k, s in ((16, 16, 1), (16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1),
                                             (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 64, 1))]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def zoos(name):
    import zoo
    import zoo.models
    if name == "resnet20":
        return cifar_resnet20(zoo.nn)
    with zoo.nn.init.skip_init():
        return getattr(zoo.models, name)()


def torchs(name):
    import torch  # pyright: ignore[reportMissingImports]
    if name == "resnet20":
        return cifar_resnet20(torch.nn)
    __import__("tests.yardsticks.torchvision_shim")
    import torchvision  # pyright: ignore[reportMissingImports]
    return getattr(torchvision.models, name)()


def inference(lib, model, x):
    model.eval()

    def call():
        with lib.inference_mode():
            return model(x)
    return call


def train_step(lib, model, x, labels):
    """SGD with momentum and a learning rate of 0: every call has the same work and the same loss."""
    model.train()
    optimizer = lib.optim.SGD(model.parameters(), lr=0.0, momentum=0.9)

    def call():
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return call


def data(batch: int, size: int) -> tuple:
    """(pictures, labels)"""
    rng = np.random.default_rng(0)
    return rng.standard_normal((batch, 3, size, size), dtype=np.float32), rng.integers(0, 10, batch)


def calls_of(name, batch, size, train):
    """{library: call}; the models have the same weights."""
    import torch  # pyright: ignore[reportMissingImports]

    import zoo
    images, labels = data(batch, size)
    ours, theirs = zoos(name), torchs(name)
    ours.load_state_dict({k: zoo.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    last = copy.deepcopy(theirs).to(memory_format=torch.channels_last)
    make = train_step if train else inference
    rest = ([zoo.tensor(labels)], [torch.tensor(labels)]) if train else ([], [])
    x = torch.tensor(images)
    return {"zoo": make(zoo, ours, zoo.tensor(images), *rest[0]), "torch": make(torch, theirs, x, *rest[1]),
            "channels_last": make(torch, last, x.contiguous(memory_format=torch.channels_last), *rest[1])}


def cases() -> list[Case]:
    return [Case("models", name, partial(calls_of, model, batch, size, train), wanted, budget=0.5)
            for name, model, batch, size, train, wanted in MODELS]
