"""A learning-rate finder and one-cycle training in the manner of fast.ai's notebooks."""
import copy
import math

import numpy as np
import torch
from torch import nn, optim, tensor


class Lambda(nn.Module):
    def __init__(self, func):
        super().__init__()
        self.func = func

    def forward(self, x):
        return self.func(x)


def accuracy(out, yb):
    return (torch.argmax(out, dim=1) == yb).float().mean()


def normalize(x, m, s):
    return (x - m) / s


def stats(x):
    return x.mean(), x.std()


def find_lr(model, loss_func, xb, yb, lo=1e-4, hi=1.0, num=8):
    state = copy.deepcopy(model.state_dict())
    opt = optim.SGD(model.parameters(), lr=lo)
    mult, best, avg, lrs, losses = (hi / lo) ** (1 / (num - 1)), math.inf, 0.0, [], []
    for i in range(num):
        loss = loss_func(model(xb), yb)
        avg = 0.9 * avg + 0.1 * loss.item()
        smooth = avg / (1 - 0.9 ** (i + 1))
        if smooth > 4 * best:
            break
        best = min(best, smooth)
        lrs.append(opt.param_groups[0]["lr"])
        losses.append(smooth)
        opt.zero_grad()
        loss.backward()
        opt.step()
        for g in opt.param_groups:
            g["lr"] *= mult
    model.load_state_dict(state)
    return lrs, losses


def main(fill):
    rng = np.random.RandomState(0)
    x, y = map(tensor, (rng.rand(24, 64).astype(np.float32), rng.randint(0, 4, 24)))
    x = normalize(x, *stats(x))
    model = nn.Sequential(Lambda(lambda t: t.view(-1, 1, 8, 8)), nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(),
                          nn.AvgPool2d(4), Lambda(lambda t: t.view(t.size(0), -1)), nn.Linear(4, 4))
    fill(model)
    lrs, losses = find_lr(model, nn.CrossEntropyLoss(), x, y)
    opt = optim.AdamW([{"params": model[1].parameters(), "lr": 1e-3}, {"params": model[5].parameters()}], lr=1e-2)
    sched = optim.lr_scheduler.OneCycleLR(opt, max_lr=[1e-3, 1e-2], total_steps=6)
    history = []
    for _ in range(6):
        loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
        loss.backward()
        opt.step()
        sched.step()
        opt.zero_grad()
        history += [loss.item(), accuracy(model(x), y).item(), *sched.get_last_lr()]
    return lrs, losses, history
