"""Softmax over many classes of very different frequency."""
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from zoo.autograd.tensor import Tensor
from zoo.nn.containers import ModuleList, Sequential
from zoo.nn.linear import Linear
from zoo.nn.module import Module
from zoo.ops.errors import DimError, ShapeError
from zoo.ops.face.join import cat

ASMoutput = namedtuple("ASMoutput", ("output", "loss"))


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-probability of each target class, and the mean of its negative (Grave et al. 2017).

    Classes are sorted by frequency, the most frequent is 0. Those below cutoffs[0] have a score of their own in the
    head; each further cluster [cutoffs[i], cutoffs[i + 1]) has one score there, and a smaller product of its own for
    its classes: log p(class) = log p(cluster) + log p(class in the cluster).

    Args:
        in_features: of the input. n_classes: in all.
        cutoffs: where clusters begin, rising, in [1, n_classes - 1].
        div_value: cluster i is projected to in_features // div_value^(i + 1) features first.
        head_bias: has the head a bias?

    Shape: input (N, in_features), target int64 (N); or (in_features) and (). Output (N) or (), loss ().

    Raises:
        ValueError: cutoffs that are not as above. ShapeError: shapes that do not fit.
        DimError (ValueError, IndexError): a target outside of [0, n_classes).

    Example:
        >>> import zoo
        >>> layer = zoo.nn.AdaptiveLogSoftmaxWithLoss(8, 100, cutoffs=[10, 50])
        >>> output, loss = layer(zoo.randn(4, 8), zoo.tensor([0, 9, 10, 99]))
        >>> output.shape, layer.log_prob(zoo.randn(4, 8)).shape
        ((4,), (4, 100))
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
                 head_bias: bool = False, device: Any = None, dtype: Any = None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs or any(int(c) != c or not 0 < c < n_classes for c in cutoffs) or cutoffs != sorted(set(cutoffs)):
            raise ValueError("AdaptiveLogSoftmaxWithLoss: wants cutoffs that rise, between 1 and n_classes - 1 = "
                             f"{n_classes - 1}, got {cutoffs}")
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        where = dict(device=device, dtype=dtype)
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width, count = int(in_features // div_value ** (i + 1)), self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, width, bias=False, **where),
                                        Linear(width, count, bias=False, **where)))

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for layer in (self.head, *(layer for part in self.tail for layer in part)):
            layer.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> ASMoutput:
        self.check(input, target)
        x, classes = (input, target) if target.ndim else (input.unsqueeze(0), target.unsqueeze(0))
        head = self.head(x).log_softmax(1)
        found = head.gather(1, classes.clamp(max=self.shortlist_size - 1).unsqueeze(1)).squeeze(1)
        for i, part in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((classes >= low) & (classes < high)).nonzero().squeeze(1)
            if rows.numel():                                 # only these rows are multiplied with the cluster's weights
                inside = part(x.index_select(0, rows)).log_softmax(1)
                column = head[:, self.shortlist_size + i].index_select(0, rows)
                chosen = (classes.index_select(0, rows) - low).unsqueeze(1)
                found = found.index_copy(0, rows, column + inside.gather(1, chosen).squeeze(1))
        output = found if target.ndim else found.squeeze(0)
        return ASMoutput(output, -found.mean())

    def check(self, input: Tensor, target: Tensor) -> None:
        """Raises unless input and target fit together."""
        if target.ndim > 1 or input.ndim != target.ndim + 1 or input.shape[:-1] != target.shape:
            raise ShapeError("AdaptiveLogSoftmaxWithLoss: wants input (N, in_features) and target (N), or "
                             f"(in_features) and (), got {tuple(input.shape)} and {tuple(target.shape)}")
        if target.numel() and not bool(((target >= 0) & (target < self.n_classes)).all()):
            raise DimError(f"AdaptiveLogSoftmaxWithLoss: wants targets in [0, {self.n_classes - 1}], got values from "
                           f"{target.min().item()} to {target.max().item()}")

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities (N, n_classes) of all classes for input (N, in_features)."""
        head = self.head(input).log_softmax(1)
        parts = [head[:, :self.shortlist_size]]
        for i, part in enumerate(self.tail):
            parts.append(head[:, self.shortlist_size + i].unsqueeze(1) + part(input).log_softmax(1))
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class (N) of each row; clusters are computed only for rows whose best score is theirs."""
        best = self.head(input).argmax(1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if not rows.numel():
            return best
        return best.index_copy(0, rows, self.log_prob(input.index_select(0, rows)).argmax(1))
