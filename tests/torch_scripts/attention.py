"""A transformer block from the primitives: einsum attention, causal mask, positional encoding, weight tying."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=50):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[:x.size(0)]


class Attention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        t, b, c = x.size()
        q, k, v = self.qkv(x).view(t, b, self.heads, -1).chunk(3, dim=-1)
        energy = torch.einsum("qbhd,kbhd->bhqk", [q, k]) / math.sqrt(q.size(-1))
        mask = torch.tril(torch.ones((t, t))).view(1, 1, t, t)
        energy = energy.masked_fill(mask == 0, float("-inf"))
        out = torch.einsum("bhqk,kbhd->qbhd", (F.softmax(energy, dim=-1), v))
        return self.proj(out.contiguous().view(t, b, c))


class Block(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.attn = Attention(c, heads)
        self.mlp = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU(approximate="tanh"), nn.Linear(4 * c, c))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class TinyGPT(nn.Module):
    def __init__(self, vocab=11, c=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, c)
        self.pos = PositionalEncoding(c)
        self.blocks = nn.Sequential(*[Block(c, 2) for _ in range(2)])
        self.norm = nn.LayerNorm(c)
        self.head = nn.Linear(c, vocab, bias=False)
        self.emb.weight = self.head.weight

    def forward(self, idx, targets=None):
        logits = self.head(self.norm(self.blocks(self.pos(self.emb(idx) * math.sqrt(8)))))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


@torch.no_grad()
def generate(model, idx, count):
    for _ in range(count):
        logits, _ = model(idx)
        v, _ = torch.topk(logits[-1], 3)
        last = torch.where(logits[-1] < v[:, [-1]], torch.tensor(-float("inf")), logits[-1])
        idx = torch.cat((idx, last.argmax(-1, keepdim=True).t()), dim=0)
    return idx


def main(fill):
    rng = np.random.RandomState(0)
    model = TinyGPT()
    fill(model)
    idx = torch.from_numpy(rng.randint(0, 11, (7, 3)))
    targets = idx.roll(-1, dims=0)
    targets[-1] = -1
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(4):
        _, loss = model(idx, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, generate(model, idx[:2], 5).tolist()
