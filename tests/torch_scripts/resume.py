"""Saving a checkpoint, resuming from it, and getting the numbers of a run that was never stopped."""
import os
import random
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def save_checkpoint(state, filename):
    torch.save(state, filename)


def steps(model, optimizer, scheduler, x, y, count):
    losses = []
    for _ in range(count):
        loss = nn.MSELoss()(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step(loss)
        losses.append(loss.item())
    return losses


def build(fill):
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))
    fill(model)
    optimizer = optim.Adam(model.parameters(), lr=0.05, amsgrad=True)
    return model, optimizer, optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)


def main(fill):
    set_seed(3)
    first = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(first, torch.rand(3))
    rng_state = torch.get_rng_state()
    again = torch.randn(2, 2)
    torch.set_rng_state(rng_state)
    assert torch.allclose(again, torch.randn(2, 2))
    rng = np.random.RandomState(0)
    x, y = torch.from_numpy(rng.randn(8, 5)).float(), torch.from_numpy(rng.randn(8, 1)).float()
    model, optimizer, scheduler = build(fill)
    losses = steps(model, optimizer, scheduler, x, y, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pth.tar")
        save_checkpoint({"epoch": 3, "state_dict": model.state_dict(), "best_loss": min(losses), "arch": "mlp",
                         "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, path)
        uninterrupted = steps(model, optimizer, scheduler, x, y, 3)
        checkpoint = torch.load(path, map_location=torch.device("cpu"), weights_only=True)
    model, optimizer, scheduler = build(lambda m: None)
    model.load_state_dict(checkpoint["state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    assert checkpoint["epoch"] == 3 and checkpoint["arch"] == "mlp"
    resumed = steps(model, optimizer, scheduler, x, y, 3)
    assert resumed == uninterrupted
    return losses, resumed, checkpoint["best_loss"]
