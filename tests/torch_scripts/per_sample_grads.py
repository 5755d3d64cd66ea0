"""Per-sample gradients with torch.func, as in the tutorial; and an ensemble of models, as in the one after it."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, stack_module_state, vmap


class SimpleCNN(nn.Module):
    def __init__(self):
        super(SimpleCNN, self).__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 8, 3, 1)
        self.fc1 = nn.Linear(200, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = self.conv1(x)
        x = F.relu(x)
        x = self.conv2(x)
        x = F.relu(x)
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = self.fc1(x)
        x = F.relu(x)
        x = self.fc2(x)
        output = F.log_softmax(x, dim=1)
        return output


def loss_fn(predictions, targets):
    return F.nll_loss(predictions, targets)


def compute_grad(model, sample, target):
    sample = sample.unsqueeze(0)  # prepend batch dimension for processing
    target = target.unsqueeze(0)
    prediction = model(sample)
    loss = loss_fn(prediction, target)
    return torch.autograd.grad(loss, list(model.parameters()))


def main(fill):
    device = 'cpu'
    rng = np.random.RandomState(0)
    batch_size = 6
    data = torch.tensor(rng.randn(batch_size, 1, 14, 14), dtype=torch.float32, device=device)
    targets = torch.tensor(rng.randint(0, 10, (batch_size,)), dtype=torch.int64, device=device)
    model = SimpleCNN().to(device=device)
    fill(model)
    per_sample = [compute_grad(model, data[i], targets[i]) for i in range(batch_size)]
    per_sample = [torch.stack(shards) for shards in zip(*per_sample)]

    params = {k: v.detach() for k, v in model.named_parameters()}
    buffers = {k: v.detach() for k, v in model.named_buffers()}

    def compute_loss(params, buffers, sample, target):
        batch = sample.unsqueeze(0)
        targets = target.unsqueeze(0)
        predictions = functional_call(model, (params, buffers), (batch,))
        loss = loss_fn(predictions, targets)
        return loss

    ft_compute_grad = grad(compute_loss)
    ft_compute_sample_grad = vmap(ft_compute_grad, in_dims=(None, None, 0, 0))
    ft_per_sample_grads = ft_compute_sample_grad(params, buffers, data, targets)
    for per_sample_grad, ft_per_sample_grad in zip(per_sample, ft_per_sample_grads.values()):
        assert torch.allclose(per_sample_grad, ft_per_sample_grad, atol=3e-3, rtol=1e-5)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in ft_per_sample_grads.values()]).norm(dim=0)

    models = [SimpleCNN().to(device) for _ in range(3)]
    for k, m in enumerate(models):
        fill(m)
        with torch.no_grad():
            m.fc2.bias += k
    params, buffers = stack_module_state(models)
    base_model = copy.deepcopy(models[0])

    def fmodel(params, buffers, x):
        return functional_call(base_model, (params, buffers), (x,))

    predictions = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, data)
    assert predictions.shape == (3, 6, 10)
    for k, m in enumerate(models):
        assert torch.allclose(predictions[k], m(data), atol=1e-3, rtol=1e-5)
    return [g.numpy() for g in ft_per_sample_grads.values()] + [norms.numpy(), predictions.detach().numpy()]
