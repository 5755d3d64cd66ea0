"""ResNet and ViT from scratch: mixup, label smoothing, EMA, accumulation, rates by layer, SWA, pruning by a mask."""
import copy
from collections import OrderedDict
from typing import Callable, List, Optional
import numpy as np
import torch
from torch import Tensor, nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, SWALR, update_bn


def conv3x3(i: int, o: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(i, o, kernel_size=3, stride=stride, padding=dilation, groups=groups, bias=False, dilation=dilation)


class BasicBlock(nn.Module):
    expansion: int = 1

    def __init__(self, inplanes: int, planes: int, stride: int = 1, downsample: Optional[nn.Module] = None,
                 norm_layer: Optional[Callable[..., nn.Module]] = None) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        self.conv1, self.bn1 = conv3x3(inplanes, planes, stride), norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = conv3x3(planes, planes), norm_layer(planes)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, layers: List[int], num_classes: int = 3, zero_init_residual: bool = False):
        super().__init__()
        self.inplanes = 4
        self.conv1 = nn.Conv2d(3, 4, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(4), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1, self.layer2 = self._make_layer(4, layers[0]), self._make_layer(8, layers[1], stride=2)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, planes, blocks, stride=1):
        downsample = None
        if stride != 1 or self.inplanes != planes:
            downsample = nn.Sequential(nn.Conv2d(self.inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))
        layers = [BasicBlock(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes
        layers += [BasicBlock(planes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.avgpool(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(x, 1))


class ViT(nn.Module):
    def __init__(self, size=8, patch=4, dim=8, heads=2, depth=1, classes=3):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, dim, kernel_size=patch, stride=patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embedding = nn.Parameter(torch.empty(1, (size // patch) ** 2 + 1, dim).normal_(std=0.02))
        layer = nn.TransformerEncoderLayer(dim, heads, dim * 2, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(dim, eps=1e-6), enable_nested_tensor=False)
        self.heads = nn.Sequential(OrderedDict([("pre_logits", nn.Linear(dim, dim)), ("act", nn.Tanh()),
                                                ("head", nn.Linear(dim, classes))]))

    def forward(self, x):
        n, c, h, w = x.shape
        x = self.conv_proj(x).reshape(n, self.class_token.shape[-1], -1).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(n, -1, -1), x], dim=1) + self.pos_embedding
        return self.heads(self.encoder(x)[:, 0])


def mixup(x, y, lam, index):
    return lam * x + (1 - lam) * x[index, :], y, y[index]


@torch.no_grad()
def ema_update(ema, model, decay=0.9):
    for e, m in zip(ema.state_dict().values(), model.state_dict().values()):
        e.copy_(e * decay + m * (1 - decay) if e.is_floating_point() else m)


def prune(module, args):
    module.weight.data.mul_(module.mask)


def vit_steps(fill, x, y, log):
    vit = ViT()
    fill(vit)
    vit.train()
    opt = torch.optim.AdamW(vit.parameters(), lr=1e-2, betas=(0.9, 0.98))
    warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=2)
    cos = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=4)
    both = torch.optim.lr_scheduler.SequentialLR(opt, [warm, cos], milestones=[2])
    for step in range(4):
        for part in x[:, :, :8, :8].chunk(2), :
            loss = sum(F.cross_entropy(vit(p), t) for p, t in zip(part, y.chunk(2))) / 2
            loss.backward()
        norm = nn.utils.clip_grad_norm_(vit.parameters(), 1.0, norm_type=2.0)
        opt.step()
        opt.zero_grad()
        both.step()
        log += [loss.item(), norm.item(), opt.param_groups[0]["lr"]]
    feats = {}
    handle = vit.encoder.layers[0].register_forward_hook(lambda m, i, o: feats.update(x=o.detach()))
    vit.eval()
    vit(x[:1, :, :8, :8])
    handle.remove()
    total = sum(p.numel() for p in vit.parameters() if p.requires_grad)
    return log, total, feats["x"].shape[1], [n for n, _ in vit.named_parameters()][:4]


def main(fill):
    rng = np.random.RandomState(7)
    x = torch.from_numpy(rng.rand(6, 3, 16, 16).astype(np.float32))
    y = torch.from_numpy(rng.randint(0, 3, 6))
    log = []
    net = ResNet([1, 1])
    fill(net)
    ema = copy.deepcopy(net).eval().requires_grad_(False)
    swa = AveragedModel(net)
    groups = [{"params": [p for n, p in net.named_parameters() if n.startswith("fc")], "lr": 0.1},
              {"params": [p for n, p in net.named_parameters() if not n.startswith("fc")]}]
    optimizer = torch.optim.SGD(groups, lr=0.01, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[0.1, 0.01], total_steps=6)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    index = torch.from_numpy(rng.permutation(6))
    for step in range(3):
        mixed, ya, yb = mixup(x, y, 0.7, index)
        out = net(mixed)
        loss = 0.7 * criterion(out, ya) + 0.3 * criterion(out, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sched.step()
        ema_update(ema, net)
        swa.update_parameters(net)
        log += [loss.item(), *sched.get_last_lr()]
    swa_sched = SWALR(optimizer, swa_lr=0.05)
    swa_sched.step()
    update_bn([x], swa)
    net.eval(), swa.eval()
    with torch.inference_mode():
        log += [ema(x).numpy(), swa(x).numpy(), net(x).softmax(-1).max(-1).values.numpy()]
    weight = net.layer1[0].conv1.weight
    k = int(weight.nelement() * 0.5)
    threshold = weight.abs().flatten().kthvalue(k).values
    mask = (weight.abs() > threshold).float()
    net.layer1[0].conv1.register_buffer("mask", mask)
    net.layer1[0].conv1.register_forward_pre_hook(prune)
    log += [mask.mean().item(), net(x).detach().numpy(), "layer1.0.conv1.mask" in net.state_dict()]
    return vit_steps(fill, x, y, log)
