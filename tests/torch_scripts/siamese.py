"""Siamese network and metric losses: contrastive loss by hand, triplet loss with hard mining by distances."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin
        self.eps = 1e-9

    def forward(self, output1, output2, target, size_average=True):
        distances = (output2 - output1).pow(2).sum(1)
        losses = 0.5 * (target.float() * distances
                        + (1 + -1 * target).float() * F.relu(self.margin - (distances + self.eps).sqrt()).pow(2))
        return losses.mean() if size_average else losses.sum()


def pdist(vectors):
    return (-2 * vectors.mm(torch.t(vectors)) + vectors.pow(2).sum(dim=1).view(1, -1)
            + vectors.pow(2).sum(dim=1).view(-1, 1))


def batch_hard(embeddings, labels, margin):
    distance = torch.cdist(embeddings, embeddings, p=2)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    hardest_positive = (distance * same.float()).max(dim=1)[0]
    hardest_negative = distance.masked_fill(same, float("inf")).min(dim=1).values
    return F.relu(hardest_positive - hardest_negative + margin).mean()


def main(fill):
    rng = np.random.RandomState(3)
    net = nn.Sequential(nn.Linear(6, 8), nn.PReLU(), nn.Linear(8, 4))
    fill(net)
    x1, x2, x3 = (torch.tensor(rng.randn(10, 6)).float() for _ in range(3))
    labels = torch.tensor(rng.randint(0, 3, size=10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    contrastive, triplet = ContrastiveLoss(), nn.TripletMarginLoss(margin=1.0, p=2)
    custom = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: 1.0 - F.cosine_similarity(a, b))
    log = []
    for _ in range(4):
        a, b, c = net(x1), net(x2), net(x3)
        losses = [contrastive(a, b, labels > 0), triplet(a, b, c), custom(a, b, c),
                  batch_hard(F.normalize(a, p=2, dim=1), labels, 0.3),
                  F.cosine_embedding_loss(a, b, torch.where(labels > 0, 1, -1))]
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        optimizer.step()
        log += [x.item() for x in losses]
    d = pdist(a)
    i, j = torch.triu_indices(10, 10, offset=1)
    return log, d[i, j].detach().numpy()
