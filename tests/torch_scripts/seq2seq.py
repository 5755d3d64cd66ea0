"""Translation from scratch: Bahdanau attention, teacher forcing; packed batches, EmbeddingBag, collate, checkpoints."""
import io
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, SequentialSampler, TensorDataset

SOS, EOS, MAX = 0, 1, 6


class EncoderRNN(nn.Module):
    def __init__(self, n, hidden):
        super(EncoderRNN, self).__init__()
        self.embedding, self.dropout = nn.Embedding(n, hidden), nn.Dropout(0.0)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden, n):
        super().__init__()
        self.embedding = nn.Embedding(n, hidden)
        self.attention = BahdanauAttention(hidden)
        self.gru = nn.GRU(2 * hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, n)

    def forward(self, encoder_outputs, encoder_hidden, target=None):
        x = torch.empty(encoder_outputs.size(0), 1, dtype=torch.long, device=encoder_outputs.device).fill_(SOS)
        hidden, outs, atts = encoder_hidden, [], []
        for i in range(MAX):
            query = hidden.permute(1, 0, 2)
            context, w = self.attention(query, encoder_outputs)
            o, hidden = self.gru(torch.cat((self.embedding(x), context), dim=2), hidden)
            o = self.out(o)
            outs.append(o)
            atts.append(w)
            if target is not None:
                x = target[:, i].unsqueeze(1)
            else:
                _, topi = o.topk(1)
                x = topi.squeeze(-1).detach()
        return F.log_softmax(torch.cat(outs, dim=1), dim=-1), hidden, torch.cat(atts, dim=1)


class TextClassificationModel(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab, dim, sparse=False)
        self.fc = nn.Linear(dim, classes)

    def init_weights(self):
        self.embedding.weight.data.uniform_(-0.5, 0.5)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


def collate_batch(batch):
    labels, texts, offsets = [], [], [0]
    for label, text in batch:
        labels.append(int(label) - 1)
        t = torch.tensor(text, dtype=torch.int64)
        texts.append(t)
        offsets.append(t.size(0))
    return torch.tensor(labels, dtype=torch.int64), torch.cat(texts), torch.tensor(offsets[:-1]).cumsum(dim=0)


def main(fill):
    rng = np.random.RandomState(2)
    src, tgt = (torch.LongTensor(rng.randint(2, 9, (8, MAX))) for _ in range(2))
    data = TensorDataset(src, tgt)
    loader = DataLoader(data, sampler=SequentialSampler(data), batch_size=4)
    encoder, decoder = EncoderRNN(9, 5), AttnDecoderRNN(5, 9)
    fill(encoder), fill(decoder)
    opts = [optim.Adam(m.parameters(), lr=0.01) for m in (encoder, decoder)]
    log = []
    for x, y in loader:
        [o.zero_grad() for o in opts]
        outs, hidden = encoder(x)
        decoded, _, _ = decoder(outs, hidden, y)
        loss = nn.NLLLoss()(decoded.view(-1, decoded.size(-1)), y.view(-1))
        loss.backward()
        [o.step() for o in opts]
        log.append(loss.item())
    with torch.no_grad():
        decoded, _, att = decoder(*encoder(src[:1]))
        words = [i.item() for i in decoded.topk(1)[1].squeeze()]
    buffer = io.BytesIO()
    torch.save({"epoch": 1, "enc": encoder.state_dict(), "opt": opts[0].state_dict(), "loss": loss}, buffer)
    buffer.seek(0)
    state = torch.load(buffer, map_location=torch.device("cpu"), weights_only=True)
    again = EncoderRNN(9, 5)
    again.load_state_dict(state["enc"], strict=False)
    opt = optim.Adam(again.parameters(), lr=1.0)
    opt.load_state_dict(state["opt"])
    log += [opt.param_groups[0]["lr"], state["loss"].item(), state["epoch"]]
    seqs = [torch.tensor(rng.randn(n, 3), dtype=torch.float32) for n in (5, 2, 4)]
    padded, lengths = pad_sequence(seqs, batch_first=True), torch.tensor([5, 2, 4])
    rnn = nn.LSTM(3, 4, bidirectional=True, batch_first=True)
    fill(rnn)
    packed = pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
    out, (h, c) = rnn(packed)
    out, lens = pad_packed_sequence(out, batch_first=True, padding_value=-1.0)
    mask = torch.arange(5)[None, :] < lens[:, None]
    pooled = (out * mask.unsqueeze(-1)).sum(1) / lens.unsqueeze(1)
    pooled.sum().backward()
    text = TextClassificationModel(10, 4, 3)
    text.init_weights()
    fill(text)
    pairs = [(k % 3 + 1, rng.randint(0, 10, k + 1).tolist()) for k in range(5)]
    for label, t, offsets in DataLoader(pairs, batch_size=5, collate_fn=collate_batch):
        loss = F.cross_entropy(text(t, offsets), label)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(text.parameters(), 0.1)
    xx = torch.tensor(rng.randn(4, 3), dtype=torch.float32, requires_grad=True)
    lin = nn.Linear(3, 3)
    fill(lin)
    checkpoint(lambda v: torch.tanh(lin(v)), xx, use_reentrant=False).sum().backward()
    return (log, words, att.numpy(), out.detach().numpy(), h.detach().numpy(), rnn.weight_hh_l0_reverse.grad.numpy(),
            text.embedding.weight.grad.numpy(), xx.grad.numpy(), offsets.tolist())
