"""REINFORCE and actor-critic with Categorical-like sampling by hand: log-probabilities gathered, returns discounted."""
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])
eps = np.finfo(np.float32).eps.item()


class Policy(nn.Module):
    def __init__(self):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(4, 16)
        self.action_head = nn.Linear(16, 2)
        self.value_head = nn.Linear(16, 1)
        self.saved_actions, self.rewards = [], []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def finish_episode(model, optimizer):
    r, policy_losses, value_losses, returns = 0, [], [], deque()
    for reward in model.rewards[::-1]:
        r = reward + 0.99 * r
        returns.appendleft(r)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for (log_prob, value), ret in zip(model.saved_actions, returns):
        advantage = ret - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([ret])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss.item()


def main(fill):
    rng = np.random.RandomState(0)
    model = Policy()
    fill(model)
    optimizer = optim.Adam(model.parameters(), lr=3e-2)
    log = []
    for _ in range(3):
        state = rng.randn(4)
        for t in range(6):
            probs, value = model(torch.from_numpy(state).float())
            action = torch.tensor(t % 2)
            log_prob = torch.log(probs.gather(0, action.unsqueeze(0)).squeeze())
            model.saved_actions.append(SavedAction(log_prob, value))
            state = rng.randn(4)
            model.rewards.append(float(state[action.item()] > 0))
        log.append(finish_episode(model, optimizer))
    return log
