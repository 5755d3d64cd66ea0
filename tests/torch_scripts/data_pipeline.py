"""Dataset classes, collate_fn with padding, samplers, random_split, packed sequences."""
import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import (ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, SubsetRandomSampler,
                              WeightedRandomSampler, random_split)


class Sequences(Dataset):
    def __init__(self, count, transform=None):
        self.rng = np.random.RandomState(0)
        self.items = [(self.rng.randint(1, 9, self.rng.randint(2, 7)), i % 2) for i in range(count)]
        self.transform = transform

    def __len__(self):
        return len(self.items)

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        tokens, label = self.items[idx]
        return (self.transform(tokens) if self.transform else tokens), label


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(5))


def collate(batch):
    batch.sort(key=lambda pair: len(pair[0]), reverse=True)
    tokens, labels = zip(*batch)
    lengths = torch.tensor([len(t) for t in tokens])
    return pad_sequence(tokens, batch_first=True, padding_value=0), lengths, torch.tensor(labels)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 5, padding_idx=0)
        self.lstm = nn.LSTM(5, 4, num_layers=1, bidirectional=True, batch_first=True)
        self.out = nn.Linear(8, 1)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embed(x), lengths, batch_first=True)
        y, (h, _) = self.lstm(packed)
        y, _ = pad_packed_sequence(y, batch_first=True)
        return self.out(torch.cat([h[-2], h[-1]], dim=1)).squeeze(-1), y.sum()


def main(fill):
    data = Sequences(11, transform=torch.from_numpy)
    model = Tagger()
    fill(model)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([2.0]))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    log = []
    for x, lengths, labels in DataLoader(data, batch_size=4, collate_fn=collate, drop_last=True):
        logits, total = model(x, lengths)
        loss = criterion(logits, labels.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log += [loss.item(), total.item(), *x.shape]
    train, val = random_split(data, [8, 3], generator=torch.Generator().manual_seed(42))
    assert sorted(train.indices + val.indices) == list(range(11)) and len(train) == 8
    assert len(ConcatDataset([train, val])) == 11 and Subset(data, [4])[0][1] == data[4][1]
    order = [int(i) for i in DataLoader(range(6), sampler=SubsetRandomSampler([1, 3, 5]), batch_size=None)]
    assert sorted(order) == [1, 3, 5]
    weighted = WeightedRandomSampler([0.0, 1.0, 0.0], num_samples=4, replacement=True)
    assert list(weighted) == [1, 1, 1, 1]
    stream = [b.tolist() for b in DataLoader(Stream(), batch_size=2)]
    named = next(iter(DataLoader([{"x": np.ones(2), "n": 1, "s": "a"}, {"x": np.zeros(2), "n": 2, "s": "b"}],
                                 batch_size=2)))
    return log, stream, named["x"].numpy(), named["n"].tolist(), named["s"], len(DataLoader(data, batch_size=4))
