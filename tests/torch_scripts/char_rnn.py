"""A character RNN trained by truncated back-propagation, and a hand-written cell with hidden state."""
import numpy as np
import torch
import torch.nn as nn

TEXT = "the quick brown fox jumps over the lazy dog. " * 3
chars = sorted(set(TEXT))
stoi = {c: i for i, c in enumerate(chars)}


class CharRNN(nn.Module):
    def __init__(self, vocab, hidden, layers=1):
        super().__init__()
        self.hidden, self.layers = hidden, layers
        self.encoder = nn.Embedding(vocab, hidden)
        self.gru = nn.GRU(hidden, hidden, layers, batch_first=True)
        self.decoder = nn.Linear(hidden, vocab)

    def forward(self, x, h):
        y, h = self.gru(self.encoder(x), h)
        return self.decoder(y), h

    def init_hidden(self, batch):
        weight = next(self.parameters()).data
        return weight.new_zeros(self.layers, batch, self.hidden)


class Cell(nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.i2h = nn.Linear(n_in + n_hidden, n_hidden)
        self.i2o = nn.Linear(n_in + n_hidden, n_out)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        combined = torch.cat((input, hidden), 1)
        return self.softmax(self.i2o(combined)), torch.tanh(self.i2h(combined))


def sample(model, start, length):
    model.eval()
    idx, h = torch.LongTensor([[stoi[start]]]), model.init_hidden(1)
    out = [start]
    with torch.no_grad():
        for _ in range(length):
            logits, h = model(idx, h)
            probs = torch.softmax(logits[0, -1] / 0.8, dim=-1)
            assert 0 <= torch.multinomial(probs, 1).item() < len(chars)
            _, top = torch.topk(probs, k=1)
            out.append(chars[top.item()])
            idx = top.unsqueeze(0)
    return "".join(out)


def main(fill):
    ids = torch.tensor([stoi[c] for c in TEXT], dtype=torch.long)
    model = CharRNN(len(chars), 12)
    fill(model)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    h = model.init_hidden(2)
    losses = []
    for step in range(4):
        x = torch.stack([ids[step:step + 16], ids[step + 40:step + 56]])
        y = torch.stack([ids[step + 1:step + 17], ids[step + 41:step + 57]])
        h = h.detach()
        out, h = model(x, h)
        loss = criterion(out.reshape(-1, len(chars)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    cell = Cell(5, 4, 3)
    fill(cell)
    hidden = torch.zeros(1, 4)
    line = torch.zeros(6, 1, 5)
    for i in range(6):
        line[i][0][i % 5] = 1
    for i in range(line.size()[0]):
        output, hidden = cell(line[i], hidden)
    loss = nn.NLLLoss()(output, torch.tensor([1]))
    loss.backward()
    for p in cell.parameters():
        p.data.add_(p.grad.data, alpha=-0.5)
    return losses, sample(model, "t", 8), np.concatenate([p.detach().numpy().ravel() for p in cell.parameters()])
