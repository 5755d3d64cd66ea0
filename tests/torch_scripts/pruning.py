"""The pruning tutorial and the parametrizations tutorial, shortened."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils import prune


class LeNet(nn.Module):
    def __init__(self):
        super(LeNet, self).__init__()
        # 1 input image channel, 6 output channels, 5x5 square conv kernel
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)  # 5x5 image dimension
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(-1, int(x.nelement() / x.shape[0]))
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        x = self.fc3(x)
        return x


class FooBarPruningMethod(prune.BasePruningMethod):
    """Prune every other entry in a tensor
    """
    PRUNING_TYPE = 'unstructured'

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


def foobar_unstructured(module, name):
    FooBarPruningMethod.apply(module, name)
    return module


class Skew(nn.Module):
    def forward(self, X):
        A = X.triu(1)
        return A - A.transpose(-1, -2)


class MatrixExponential(nn.Module):
    def forward(self, X):
        return torch.matrix_exp(X)


class CayleyMap(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("Id", torch.eye(n))

    def forward(self, X):
        # (I + X)(I - X)^{-1}
        return torch.linalg.solve(self.Id - X, self.Id + X)


def main(fill):
    model = LeNet()
    fill(model)
    module = model.conv1
    prune.l1_unstructured(module, name="bias", amount=3)
    prune.ln_structured(module, name="weight", amount=0.5, n=2, dim=0)
    prune.l1_unstructured(module, name="weight", amount=0.3)
    for hook in module._forward_pre_hooks.values():
        if hook._tensor_name == "weight":  # select out the correct hook
            break
    history = len(list(hook))
    keys = list(model.state_dict().keys())
    foobar_unstructured(model.fc3, name='bias')
    parameters_to_prune = ((model.conv2, 'weight'), (model.fc1, 'weight'), (model.fc2, 'weight'))
    prune.global_unstructured(parameters_to_prune, pruning_method=prune.L1Unstructured, amount=0.2)
    sparsity = [100. * float(torch.sum(m.weight == 0)) / float(m.weight.nelement()) for m, _ in parameters_to_prune]
    x = torch.tensor(np.random.RandomState(0).randn(2, 1, 32, 32), dtype=torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(model(x), torch.tensor([1, 2])).backward()
        optimizer.step()
    out = model(x)
    for m, name in parameters_to_prune:
        prune.remove(m, name)
    assert torch.allclose(model(x), out, atol=1e-5)

    layer = nn.Linear(3, 3)
    fill(layer)
    parametrize.register_parametrization(layer, "weight", Skew())
    parametrize.register_parametrization(layer, "weight", MatrixExponential())
    X = layer.weight
    assert torch.dist(X.T @ X, torch.eye(3)) < 1e-5
    other = nn.Linear(3, 3)
    fill(other)
    parametrize.register_parametrization(other, "weight", Skew())
    parametrize.register_parametrization(other, "weight", CayleyMap(3))
    with parametrize.cached():
        y = other(layer(torch.ones(1, 3)))
    y.sum().backward()
    grad = layer.parametrizations.weight.original.grad
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    return (keys, history, sparsity, out.detach().numpy(), y.detach().numpy(), grad.numpy(),
            layer.weight.detach().numpy(), list(other.state_dict().keys()), str(layer))
