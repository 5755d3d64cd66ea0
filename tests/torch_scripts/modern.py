"""What newer scripts do: DataParallel, weight_norm, init loops, functional grads."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def init_weights(m):
    if isinstance(m, nn.Linear):
        torch.nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
        m.bias.data.fill_(0.01)
    elif isinstance(m, (nn.BatchNorm1d, nn.GroupNorm)):
        nn.init.constant_(m.weight, 1)
        nn.init.constant_(m.bias, 0)


def gumbel(logits):
    y = F.gumbel_softmax(logits, tau=0.5, hard=True, dim=-1)
    assert torch.equal(y.sum(-1), torch.ones(logits.shape[:-1])) and set(y.unique().tolist()) <= {0.0, 1.0}


def main(fill):
    rng = np.random.RandomState(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(inplace=True), nn.Linear(5, 3))
    model.apply(init_weights)
    assert model[0].bias.eq(0.01).all()
    fill(model)
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)
    x = torch.as_tensor(rng.randn(8, 6), dtype=torch.get_default_dtype(), device=device)
    wn = torch.nn.utils.weight_norm(nn.Linear(6, 4), name="weight")
    wn.weight_g.data.fill_(2.0)
    norms = (wn(torch.eye(6)) - wn.bias).norm(dim=0)
    gumbel(torch.zeros(4, 3))
    y = torch.randint(0, 3, (8,), generator=torch.Generator().manual_seed(0))
    assert y.min() >= 0 and y.max() < 3
    onehot = F.one_hot(torch.arange(8) % 3, num_classes=3).float()
    loss = -(onehot * F.log_softmax(model(x), dim=1)).sum(dim=1).mean()
    grads = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    loss.backward()
    total = torch.norm(torch.stack([torch.norm(p.grad.detach(), 2) for p in model.parameters()]), 2)
    theta = torch.tensor([[[0.8, 0.1, 0.2], [-0.1, 0.9, 0.0]]])
    image = torch.arange(16.0).view(1, 1, 4, 4)
    warped = F.grid_sample(image, F.affine_grid(theta, [1, 1, 4, 4], align_corners=False), align_corners=False)
    bag = nn.EmbeddingBag(5, 2, mode="mean")
    fill(bag)
    bags = bag(torch.tensor([0, 1, 2, 4]), torch.tensor([0, 3]))
    resized = F.interpolate(image, scale_factor=2, mode="bilinear", align_corners=True)
    return (loss.item(), total.item(), [g.norm().item() for g in grads], norms.detach().numpy(), warped.numpy(),
            bags.detach().numpy(), resized.numpy())
