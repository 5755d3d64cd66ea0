"""A module with buffers, ParameterList, ModuleDict, ModuleList and shared weights; introspection and surgery."""
from collections import OrderedDict

import numpy as np
import torch
from torch import Tensor, nn


class Mixed(nn.Module):
    scale: Tensor

    def __init__(self, width=4, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.gates = nn.ParameterList([nn.Parameter(torch.ones(width)) for _ in range(depth)])
        self.acts = nn.ModuleDict({"relu": nn.ReLU(), "lrelu": nn.LeakyReLU(0.1), "rrelu": nn.RReLU()})
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("steps", torch.zeros(1, dtype=torch.long), persistent=False)
        self.register_parameter("absent", None)
        self.head = nn.Linear(width, 6, bias=False)
        self.embed = nn.Embedding(6, width)
        self.head.weight = self.embed.weight
        self.reset_parameters()

    def reset_parameters(self):
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p, gain=nn.init.calculate_gain("relu"))
            elif "bias" in name:
                nn.init.zeros_(p)
        for m in self.modules():
            if isinstance(m, (nn.Linear, nn.Embedding)):
                nn.init.trunc_normal_(m.weight, std=0.02)

    def forward(self, idx, act="lrelu"):
        self.steps += 1
        x = self.embed(idx)
        for i, (block, gate) in enumerate(zip(self.blocks, self.gates)):
            x = x + self.acts[act](block(x)) * gate / (i + 1)
        return self.head(x * self.scale)

    def extra_repr(self):
        return "mixed"


def main(fill):
    model = Mixed()
    fill(model)
    assert model.head.weight is model.embed.weight and len(list(model.parameters())) == 10
    idx = torch.tensor(np.arange(5) % 6)
    before = model(idx)
    model.eval()
    rrelu = model(idx, "rrelu")
    names = [n for n, _ in model.named_parameters()] + [n for n, _ in model.named_buffers()]
    children = [(n, type(m).__name__) for n, m in model.named_children()]
    state = model.state_dict()
    assert "steps" not in state and isinstance(state, OrderedDict)
    renamed = OrderedDict((k.replace("blocks.", "module.blocks."), v) for k, v in state.items())
    fresh = Mixed()
    result = fresh.load_state_dict({k.replace("module.", ""): v for k, v in renamed.items() if "gates" not in k},
                                   strict=False)
    assert sorted(result.missing_keys) == ["gates.0", "gates.1", "gates.2"] and not result.unexpected_keys
    try:
        fresh.load_state_dict({"head.weight": torch.zeros(2, 2)})
    except RuntimeError as e:
        assert "head.weight" in str(e) and "gates.0" in str(e)
    else:
        raise AssertionError("a wrong state dict was taken")
    for p in model.embed.parameters():
        p.requires_grad = False
    trainable = list(filter(lambda p: p.requires_grad, model.parameters()))
    model.blocks[0] = nn.Identity()
    model.acts.update({"gelu": nn.GELU()})
    after = model(idx, act="gelu")
    half = model.double()
    assert next(half.parameters()).dtype == torch.float64 and half.scale.dtype is torch.float64
    return (names, children, len(trainable), before.detach().numpy(), rrelu.detach().numpy(), after.detach().numpy(),
            model.get_submodule("blocks.1").weight.shape == torch.Size([4, 4]), repr(nn.Linear(2, 3)))
