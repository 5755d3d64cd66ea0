"""REINFORCE with a baseline (Williams 1992) on CartPole (Barto, Sutton and Anderson 1983), which is 30 lines of NumPy.

    python scripts/reinforce_cartpole.py [--seed 0]

An episode ends when the pole is more than 12 degrees off or the cart more than 2.4 m away, at the latest after 500
steps; every step is worth 1. At the end the policy plays 100 new episodes, and their mean reward is printed.
"""

import argparse

import numpy as np

import zoo
from zoo import nn


class CartPole:
    """Many poles on carts side by side, each pushed left (0) or right (1) with 10 N for 20 ms in every step.

    Position, speed, angle and angular speed start between -0.05 and 0.05 (Gymnasium's CartPole-v1).
    """

    GRAVITY, CART, POLE, LENGTH, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02     # LENGTH: half of the pole's
    FAR, TILTED, STEPS = 2.4, np.deg2rad(12), 500

    def __init__(self, count: int, rng: np.random.Generator):
        self.state = rng.uniform(-0.05, 0.05, (count, 4))
        self.steps = 0
        self.alive = np.ones(count, bool)

    def step(self, actions: np.ndarray) -> np.ndarray:
        """One push of each cart; which of the episodes go on. What has fallen stays as it is."""
        x, v, angle, spin = self.state.T
        sin, cos, mass = np.sin(angle), np.cos(angle), self.CART + self.POLE
        push = (np.where(actions == 1, self.FORCE, -self.FORCE) + self.POLE * self.LENGTH * spin**2 * sin) / mass
        turn = (self.GRAVITY * sin - cos * push) / (self.LENGTH * (4 / 3 - self.POLE * cos**2 / mass))
        pull = push - self.POLE * self.LENGTH * turn * cos / mass
        change = np.stack([v, pull, spin, turn], axis=1)
        self.state = np.where(self.alive[:, None], self.state + self.TAU * change, self.state)
        self.steps += 1
        fine = (np.abs(self.state[:, 0]) <= self.FAR) & (np.abs(self.state[:, 2]) <= self.TILTED)
        self.alive = self.alive & fine & (self.steps < self.STEPS)
        return self.alive


def play(policy: nn.Module, count: int, rng: np.random.Generator, device: str) -> tuple[np.ndarray, ...]:
    """States (T, count, 4) float32, actions (T, count) and what was alive before each step (T, count)."""
    poles, history = CartPole(count, rng), []
    while poles.alive.any():
        alive, state = poles.alive, poles.state.astype(np.float32)
        with zoo.no_grad():
            logits = policy(zoo.from_numpy(state).to(device)).cpu().numpy()
        right = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
        actions = (rng.random(count) < right).astype(np.int64)
        history.append((state, actions, alive))
        poles.step(actions)
    return tuple(np.stack(column) for column in zip(*history, strict=True))


def returns(alive: np.ndarray, gamma: float) -> np.ndarray:
    """Discounted sums of the rewards to come, (T, count)."""
    sums, out = np.zeros(alive.shape[1]), np.empty(alive.shape)
    for t in reversed(range(len(alive))):
        sums = (1 + gamma * sums) * alive[t]
        out[t] = sums
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=100, help="steps of the policy (100)")
    parser.add_argument("--episodes", type=int, default=16, help="played for each of them (16)")
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--gamma", type=float, default=0.99, help="discount of later rewards (0.99)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    args = parser.parse_args()
    zoo.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    policy, baseline = (nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, n)).to(args.device) for n in (2, 1))
    optimizer = zoo.optim.Adam([*policy.parameters(), *baseline.parameters()], args.lr)

    for update in range(1, args.updates + 1):
        states, actions, alive = play(policy, args.episodes, rng, args.device)
        inputs, chosen, target = (zoo.from_numpy(a[alive]).to(args.device)
                                  for a in (states, actions, returns(alive, args.gamma).astype(np.float32)))
        value = baseline(inputs)[:, 0]
        advantage = target - value.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        log_probability = policy(inputs).log_softmax(1).gather(1, chosen[:, None])[:, 0]
        loss = -(advantage * log_probability).mean() + nn.functional.smooth_l1_loss(value, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 10 == 0 or update == args.updates:
            print(f"update {update:3d}  mean reward {alive.sum(0).mean():5.1f}", flush=True)

    _, _, alive = play(policy, 100, rng, args.device)
    print(f"mean reward {alive.sum(0).mean():.1f} over 100 new episodes")


if __name__ == "__main__":
    main()
