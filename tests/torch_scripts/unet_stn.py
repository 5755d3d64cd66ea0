"""U-Net with skips and transposed convolutions, dice loss; a spatial transformer, FGSM, transfer by freezing."""
import copy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import lr_scheduler


class DoubleConv(nn.Module):
    def __init__(self, i, o, mid=None):
        super().__init__()
        mid = mid or o
        self.double_conv = nn.Sequential(
            nn.Conv2d(i, mid, kernel_size=3, padding=1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(inplace=True),
            nn.Conv2d(mid, o, kernel_size=3, padding="same", bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, i, o, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(i, o, i // 2)
        else:
            self.up = nn.ConvTranspose2d(i, i // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(i, o)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        dY, dX = x2.size()[2] - x1.size()[2], x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [dX // 2, dX - dX // 2, dY // 2, dY - dY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, bilinear=False):
        super().__init__()
        f = 2 if bilinear else 1
        self.inc, self.down = DoubleConv(1, 4), nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8 // f))
        self.up, self.outc = Up(8, 4, bilinear), nn.Conv2d(4, 2, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        return self.outc(self.up(self.down(x1), x1))


def dice_coeff(input, target, reduce_batch_first=False, epsilon=1e-6):
    assert input.size() == target.size()
    sum_dim = (-1, -2) if input.dim() == 2 or not reduce_batch_first else (-1, -2, -3)
    inter = 2 * (input * target).sum(dim=sum_dim)
    sets_sum = input.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


class STN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, kernel_size=3)
        self.conv2_drop = nn.Dropout2d()
        self.fc = nn.Linear(4 * 3 * 3, 3)
        self.localization = nn.Sequential(nn.Conv2d(1, 3, kernel_size=3), nn.MaxPool2d(2, stride=2), nn.ReLU(True))
        self.fc_loc = nn.Sequential(nn.Linear(3 * 3 * 3, 6), nn.ReLU(True), nn.Linear(6, 3 * 2))
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))

    def stn(self, x):
        xs = self.localization(x)
        xs = xs.view(-1, 3 * 3 * 3)
        theta = self.fc_loc(xs).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=True)
        return F.grid_sample(x, grid, align_corners=True)

    def forward(self, x):
        x = self.stn(x)
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv(x)), 2))
        return F.log_softmax(self.fc(x.view(-1, 36)), dim=1)


def fgsm_attack(image, epsilon, data_grad):
    return torch.clamp(image + epsilon * data_grad.sign(), 0, 1)


def main(fill):
    rng = np.random.RandomState(1)
    x = torch.tensor(rng.rand(2, 1, 9, 8), dtype=torch.float32)
    mask = torch.tensor(rng.randint(0, 2, (2, 9, 8)))
    results = []
    for bilinear in (False, True):
        net = UNet(bilinear).to(memory_format=torch.channels_last)
        fill(net)
        optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9, foreach=True)
        scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=0)
        for _ in range(3):
            pred = net(x.to(device="cpu", dtype=torch.float32, memory_format=torch.channels_last))
            loss = nn.CrossEntropyLoss()(pred, mask.long())
            loss = loss + 1 - dice_coeff(F.softmax(pred, dim=1).float(),
                                         F.one_hot(mask, 2).permute(0, 3, 1, 2).float(), True)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step(loss)
            results.append(loss.item())
        results.append(optimizer.param_groups[0]["lr"])
    net = STN()
    assert net.fc_loc[2].bias.tolist() == [1, 0, 0, 0, 1, 0]
    fill(net)
    net.eval()
    data = torch.tensor(rng.rand(3, 1, 8, 8), dtype=torch.float32)
    data.requires_grad = True
    out = net(data)
    init_pred = out.max(1, keepdim=True)[1]
    loss = F.nll_loss(out, torch.tensor([0, 1, 2]))
    net.zero_grad()
    loss.backward()
    perturbed = fgsm_attack(data, 0.1, data.grad.data)
    results += [out.detach().numpy(), init_pred.tolist(), perturbed.detach().numpy()]
    best = copy.deepcopy(net.state_dict())
    for param in net.parameters():
        param.requires_grad = False
    net.fc = nn.Linear(net.fc.in_features, 5)
    fill(net.fc)
    optimizer = torch.optim.SGD(net.fc.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    sched = lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    for phase in ["train", "val"]:
        net.train() if phase == "train" else net.eval()
        net.conv2_drop.eval()
        optimizer.zero_grad()
        with torch.set_grad_enabled(phase == "train"):
            outputs = net(data.detach())
            _, preds = torch.max(outputs, 1)
            loss = nn.CrossEntropyLoss()(outputs, torch.tensor([0, 4, 2]))
            if phase == "train":
                loss.backward()
                optimizer.step()
                sched.step()
        results.append(loss.item() * data.size(0))
        results.append(torch.sum(preds == torch.tensor([0, 4, 2]).data).double().item() / 3)
    results.append(sched.get_last_lr())
    results.append(len(best))
    return results
