"""Hooks: features taken by a forward hook, gradients changed on their way, statistics, pruning after a step."""
import numpy as np
import torch
import torch.nn as nn


class SaveFeatures:
    def __init__(self, m):
        self.hook = m.register_forward_hook(self.hook_fn)

    def hook_fn(self, module, input, output):
        self.features = output.clone()
        self.shape = input[0].shape

    def remove(self):
        self.hook.remove()


def main(fill):
    rng = np.random.RandomState(5)
    model = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(3, 2))
    fill(model)
    x = torch.tensor(rng.randn(4, 1, 6, 6), dtype=torch.float32, requires_grad=True)
    saved = SaveFeatures(model[2])
    grads, stats, seen = {}, [], []
    model[0].register_full_backward_hook(lambda m, gi, go: grads.__setitem__("conv", go[0].norm().item()))
    model[5].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    for name, layer in model.named_modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.register_forward_hook(lambda m, i, o, name=name: stats.append((name, o.std().item())))
    model[5].weight.register_hook(lambda g: g.clamp(-0.05, 0.05))
    handle = model[5].bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))
    out = model(x)
    h = out.register_hook(lambda g: g * 2)
    out.retain_grad()
    out.pow(2).mean().backward()
    h.remove()
    saved.remove()
    handle.remove()
    cam = torch.einsum("kc,nchw->nkhw", model[5].weight, saved.features)
    assert tuple(saved.shape) == (4, 3, 6, 6)
    return (grads["conv"], [s for _, s in stats], [n for n, _ in stats], seen, model[5].weight.grad.numpy(),
            out.grad.numpy(), cam.detach().numpy())
