"""A variational autoencoder: reparameterisation, binary cross entropy plus KL divergence."""
import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 16)
        self.fc21 = nn.Linear(16, 4)
        self.fc22 = nn.Linear(16, 4)
        self.fc3 = nn.Linear(4, 16)
        self.fc4 = nn.Linear(16, 20)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, noise):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        assert eps.shape == noise.shape and eps.dtype == std.dtype
        return mu + noise * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x, noise):
        mu, logvar = self.encode(x.view(-1, 20))
        return self.decode(self.reparameterize(mu, logvar, noise)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 20), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def main(fill):
    rng = np.random.RandomState(0)
    data = torch.tensor(rng.rand(32, 1, 4, 5), dtype=torch.float32)
    model = VAE()
    fill(model)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(5):
        noise = torch.FloatTensor(rng.randn(32, 4))
        optimizer.zero_grad(set_to_none=True)
        recon_batch, mu, logvar = model(data, noise)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        losses.append(loss.item() / len(data))
        optimizer.step()
    with torch.no_grad():
        sample = model.decode(torch.zeros(2, 4)).cpu()
    return losses, sample.numpy()
