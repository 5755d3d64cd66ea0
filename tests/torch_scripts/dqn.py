"""Deep Q-learning's update, REINFORCE and actor-critic helpers, replay memory, soft target update, quantile loss."""
from collections import deque, namedtuple
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
import torch.nn.functional as F

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 16)
        self.layer2 = nn.Linear(16, 16)
        self.layer3 = nn.Linear(16, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


def quantile_loss(preds, target, quantiles):
    losses = []
    for i, q in enumerate(quantiles):
        errors = target - preds[:, i]
        losses.append(torch.max((q - 1) * errors, q * errors).unsqueeze(1))
    return torch.mean(torch.sum(torch.cat(losses, dim=1), dim=1))


def main(fill):
    other = "mps" if torch.backends.mps.is_available() else "cpu"
    device = torch.device("cuda" if torch.cuda.is_available() else other)
    rng = np.random.RandomState(0)
    policy, target = DQN(4, 2).to(device), DQN(4, 2).to(device)
    fill(policy)
    target.load_state_dict(policy.state_dict())
    optimizer = optim.AdamW(policy.parameters(), lr=1e-3, amsgrad=True)
    memory = deque([], maxlen=100)
    for k in range(20):
        s = torch.tensor(rng.randn(4), dtype=torch.float32, device=device).unsqueeze(0)
        n = None if k % 5 == 4 else torch.tensor(rng.randn(4), dtype=torch.float32, device=device).unsqueeze(0)
        with torch.no_grad():
            a = policy(s).max(1).indices.view(1, 1)
        memory.append(Transition(s, a, n, torch.tensor([float(k % 3)], device=device)))
    out = []
    for _ in range(3):
        batch = Transition(*zip(*list(memory)[:16]))
        mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), device=device, dtype=torch.bool)
        nxt = torch.cat([s for s in batch.next_state if s is not None])
        states, actions, rewards = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
        q = policy(states).gather(1, actions)
        v = torch.zeros(16, device=device)
        with torch.no_grad():
            v[mask] = target(nxt).max(1).values
        expected = (v * 0.99) + rewards
        loss = nn.SmoothL1Loss()(q, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        tsd, psd = target.state_dict(), policy.state_dict()
        for key in psd:
            tsd[key] = psd[key] * 0.005 + tsd[key] * (1 - 0.005)
        target.load_state_dict(tsd)
        out.append(loss.item())
    durations = torch.tensor([1, 3, 5, 7], dtype=torch.float)
    means = torch.cat((torch.zeros(1), durations.unfold(0, 2, 1).mean(1).view(-1)))
    returns = torch.tensor([1.0, 2.0, 4.0])
    returns = (returns - returns.mean()) / (returns.std() + np.finfo(np.float32).eps.item())
    x = torch.tensor(rng.randn(10, 1), dtype=torch.float32)
    net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 3))
    fill(net)
    ql = quantile_loss(net(x), x.squeeze().sin(), [0.1, 0.5, 0.9])
    ql.backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    m = (actions == 0).float().mean().item()
    return out, means.numpy(), returns.numpy(), ql.item(), [p.norm().item() for p in net.parameters()], m
