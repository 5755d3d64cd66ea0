"""A DCGAN's two alternating steps: weights_init by class name, label tensors, detach, spectral normalisation."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.parallel
import torch.backends.cudnn as cudnn
import torch.optim as optim
from torch.nn.utils import spectral_norm

cudnn.benchmark = True
nz, ngf, ndf, nc = 6, 4, 4, 1


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self, ngpu):
        super().__init__()
        self.ngpu = ngpu
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, nc, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, input):
        if input.is_cuda and self.ngpu > 1:
            return nn.parallel.data_parallel(self.main, input, range(self.ngpu))
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 3, 1, 1, bias=False), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False), nn.Sigmoid())

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


def main(fill):
    rng = np.random.RandomState(1)
    device = torch.device("cpu")
    netG, netD = Generator(0).to(device), Discriminator().to(device)
    netG.apply(weights_init)
    netD.apply(weights_init)
    assert 0.5 < netG.main[1].weight.mean().item() < 1.5
    fill(netG)
    fill(netD)
    criterion = nn.BCELoss()
    real_label, fake_label = 1.0, 0.0
    optimizerD = optim.Adam(netD.parameters(), lr=0.002, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=0.002, betas=(0.5, 0.999))
    history = []
    for _ in range(3):
        real = torch.from_numpy(rng.rand(5, 1, 8, 8)).float().to(device)
        netD.zero_grad()
        label = torch.full((real.size(0),), real_label, dtype=torch.float, device=device)
        errD_real = criterion(netD(real), label)
        errD_real.backward()
        noise = torch.tensor(rng.randn(5, nz, 1, 1).astype("float32"), device=device)
        fake = netG(noise)
        label.fill_(fake_label)
        output = netD(fake.detach())
        errD_fake = criterion(output, label)
        errD_fake.backward()
        D_G_z1 = output.mean().item()
        optimizerD.step()
        netG.zero_grad()
        label.fill_(real_label)
        errG = criterion(netD(fake), label)
        errG.backward()
        optimizerG.step()
        history += [(errD_real + errD_fake).item(), errG.item(), D_G_z1]
    sn = spectral_norm(nn.Linear(4, 3), n_power_iterations=20)
    norm = np.linalg.norm(sn(torch.eye(4)).detach().numpy() - sn.bias.detach().numpy(), 2)
    assert abs(norm - 1) < 1e-2 and {"weight_orig", "weight_u", "weight_v"} <= set(sn.state_dict())
    return history
