"""Neural style transfer's loop (LBFGS on an image); a word-level LSTM with repackaged state and a hand-written SGD."""
import math
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class ContentLoss(nn.Module):
    def __init__(self, target):
        super(ContentLoss, self).__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super(StyleLoss, self).__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super(Normalization, self).__init__()
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, tie_weights=False):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(0.0)
        self.encoder = nn.Embedding(ntoken, ninp)
        if rnn_type in ["LSTM", "GRU"]:
            self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=0.0)
        else:
            self.rnn = nn.RNN(ninp, nhid, nlayers, nonlinearity={"RNN_TANH": "tanh", "RNN_RELU": "relu"}[rnn_type])
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        self.rnn_type, self.nhid, self.nlayers = rnn_type, nhid, nlayers

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        if self.rnn_type == "LSTM":
            return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def word_model(fill, rng, log):
    data = batchify(torch.tensor(rng.randint(0, 9, 62)), 3)
    for kind in ("LSTM", "GRU", "RNN_TANH", "RNN_RELU"):
        m = RNNModel(kind, 9, 6, 6, 2, tie_weights=True)
        fill(m)
        hidden = m.init_hidden(3)
        lr, total = 0.5, 0.0
        for batch, k in enumerate(range(0, data.size(0) - 1, 5)):
            seq = min(5, len(data) - 1 - k)
            x, y = data[k:k + seq], data[k + 1:k + 1 + seq].view(-1)
            m.zero_grad()
            hidden = repackage_hidden(hidden)
            output, hidden = m(x, hidden)
            loss = nn.NLLLoss()(output, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(m.parameters(), 0.25)
            for p in m.parameters():
                p.data.add_(p.grad, alpha=-lr)
            total += loss.item()
        m.rnn.flatten_parameters()
        log += [total, math.exp(total / (batch + 1))]


def main(fill):
    rng = np.random.RandomState(0)
    cnn = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2, 2), nn.Conv2d(4, 4, 3))
    fill(cnn)
    cnn.eval()
    content, style = (torch.tensor(rng.rand(1, 3, 8, 8), dtype=torch.float) for _ in range(2))
    model, losses, i = nn.Sequential(Normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])), [], 0
    for layer in cnn.children():
        if isinstance(layer, nn.Conv2d):
            i += 1
            name = "conv_{}".format(i)
        elif isinstance(layer, nn.ReLU):
            name, layer = "relu_{}".format(i), nn.ReLU(inplace=False)
        elif isinstance(layer, nn.MaxPool2d):
            name = "pool_{}".format(i)
        model.add_module(name, layer)
        if name == "conv_2":
            losses.append(ContentLoss(model(content).detach()))
            model.add_module("content_loss_{}".format(i), losses[-1])
        if "conv" in name:
            losses.append(StyleLoss(model(style).detach()))
            model.add_module("style_loss_{}".format(i), losses[-1])
    input_img = content.clone()
    optimizer = optim.LBFGS([input_img])
    input_img.requires_grad_(True)
    model.eval()
    model.requires_grad_(False)
    run, seen = [0], []
    while run[0] <= 20:
        def closure():
            with torch.no_grad():
                input_img.clamp_(0, 1)
            optimizer.zero_grad()
            model(input_img)
            loss = sum(sl.loss * 100 for sl in losses)
            loss.backward()
            run[0] += 1
            seen.append(loss.item())
            return loss
        optimizer.step(closure)
    names = [n for n, _ in model.named_children()]
    log = [seen[0], seen[3]]
    word_model(fill, rng, log)
    return log, names
