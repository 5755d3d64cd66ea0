"""Gradient accumulation, clipping, autocast and GradScaler, an exponential moving average of the weights."""
import copy

import numpy as np
import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast


def ema_update(average, model, decay):
    with torch.no_grad():
        for a, p in zip(average.parameters(), model.parameters()):
            a.mul_(decay).add_(p.data, alpha=1 - decay)
        for a, b in zip(average.buffers(), model.buffers()):
            a.copy_(b)


def main(fill):
    rng = np.random.RandomState(0)
    x = torch.as_tensor(rng.randn(12, 10).astype(np.float32))
    y = torch.as_tensor(rng.randn(12, 1).astype(np.float32))
    model = nn.Sequential(nn.Linear(10, 8, bias=False), nn.BatchNorm1d(8), nn.SiLU(), nn.Linear(8, 1))
    fill(model)
    average = copy.deepcopy(model).requires_grad_(False)
    decay, no_decay = [], []
    for _, p in model.named_parameters():
        (no_decay if p.ndim == 1 else decay).append(p)
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}],
                                  lr=1e-2, betas=(0.9, 0.95), eps=1e-8)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    scaler = GradScaler("cpu", enabled=False)
    use_amp, accumulate, log = False, 3, []
    for _ in range(4):
        optimizer.zero_grad(set_to_none=True)
        for micro in range(accumulate):
            part = slice(micro * 4, micro * 4 + 4)
            with autocast("cpu", dtype=torch.bfloat16, enabled=use_amp):
                loss = nn.functional.huber_loss(model(x[part]), y[part]) / accumulate
            scaler.scale(loss).backward()
            log.append(loss.item())
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        ema_update(average, model, 0.9)
        log += [norm.item(), optimizer.param_groups[0]["lr"]]
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        assert (x @ x.t()).dtype == torch.bfloat16
    flat = nn.utils.parameters_to_vector(average.parameters())
    nn.utils.vector_to_parameters(flat * 2, average.parameters())
    return log, flat.numpy(), average[3].bias.numpy()
