"""CTC: torch's losses and gradients, targets in both layouts, brute force, decoding."""
import itertools

import numpy as np
import pytest

import zoo
from zoo import nn
from zoo.nn import functional as F  # noqa: N812
from zoo.nn.utils.ctc import beam_decode, greedy_decode

CASES = [  # T, C, input lengths, target lengths, blank
    (12, 5, (12, 12, 12), (4, 4, 4), 0),
    (12, 5, (12, 7, 9), (4, 1, 3), 2),
    (6, 3, (6, 6), (5, 0), 2),
    (1, 4, (1,), (1,), 0),
]


def problem(rng, steps, classes, inputs, lengths, blank):
    """Logits, and padded targets without blanks."""
    labels = [c for c in range(classes) if c != blank]
    return rng.normal(size=(steps, len(inputs), classes)), rng.choice(labels, (len(inputs), max(lengths)))


@pytest.mark.torch
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_torch(rng, case, reduction, dtype, tolerance):
    """Losses, and gradients behind log_softmax; both layouts of targets, lengths as tensors and tuples."""
    import torch
    steps, classes, inputs, lengths, blank = case
    logits, targets = problem(rng, *case)
    flat = np.concatenate([row[:n] for row, n in zip(targets, lengths, strict=True)])
    for labels, as_tensors in ((targets, True), (flat, False)):
        results = []
        for lib in (zoo, torch):
            x = lib.tensor(logits.astype(dtype)).requires_grad_()
            a, b = (lib.tensor(v) if as_tensors else v for v in (inputs, lengths))
            loss = lib.nn.CTCLoss(blank, reduction, zero_infinity=True)(x.log_softmax(2), lib.tensor(labels), a, b)
            loss.sum().backward()
            results.append((loss.detach().numpy(), x.grad.numpy()))
        for got, want in zip(*results, strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            assert np.abs(got - want).max() <= tolerance * max(1.0, np.abs(want).max())


@pytest.mark.torch
def test_targets_that_do_not_fit(rng):
    """Five equal labels need nine steps: inf, or with zero_infinity 0 and no gradient."""
    import torch
    logits = rng.normal(size=(6, 2, 3))
    for zero in (False, True):
        losses, grads = [], []
        for lib in (zoo, torch):
            x = lib.tensor(logits).requires_grad_()
            loss = lib.nn.functional.ctc_loss(x.log_softmax(2), lib.tensor([[1] * 5, [1, 2, 1, 2, 1]]), (6, 6), (5, 5),
                                              reduction="none", zero_infinity=zero)
            losses.append(loss.detach().numpy())
            if zero:
                loss.sum().backward()
                grads.append(x.grad.numpy())
        np.testing.assert_allclose(*losses, rtol=1e-12)
        assert losses[0][0] == (0 if zero else np.inf)
    np.testing.assert_allclose(*grads, atol=1e-12)
    assert not grads[0][:, 0].any() and grads[0][:, 1].any()


@pytest.mark.torch
def test_one_sequence_without_a_batch(rng):
    import torch
    logits, targets = problem(rng, 7, 4, (7,), (3,), 0)
    got, want = (lib.nn.functional.ctc_loss(lib.tensor(logits[:, 0]).log_softmax(1), lib.tensor(targets[0]),
                                            lib.tensor(7), lib.tensor(3)).item() for lib in (zoo, torch))
    assert got == pytest.approx(want, rel=1e-12)


def read_off(path, blank):
    return [c for c, _ in itertools.groupby(path) if c != blank]


def test_is_the_sum_over_all_paths(rng):
    """The definition, path by path; and a wide beam finds the same probability."""
    probabilities = rng.dirichlet(np.ones(3), size=(5, 1))
    sums: dict[tuple, float] = {}
    for path in itertools.product(range(3), repeat=5):
        labels = tuple(read_off(path, 0))
        sums[labels] = sums.get(labels, 0.0) + float(np.prod(probabilities[range(5), 0, path]))
    log_probs = zoo.tensor(np.log(probabilities))
    for labels, p in sums.items():
        loss = F.ctc_loss(log_probs, zoo.tensor([labels], dtype=zoo.int64), (5,), (len(labels),), reduction="sum")
        assert loss.item() == pytest.approx(-np.log(p), rel=1e-10)
    best = sorted(sums, key=lambda labels: -sums[labels])[:3]
    readings = beam_decode(log_probs, beam_width=100, top=3)[0]
    assert [tuple(r.labels) for r in readings] == best
    np.testing.assert_allclose([r.score for r in readings], np.log([sums[b] for b in best]), rtol=1e-12)


def test_greedy_decoding_follows_the_best_path(rng):
    log_probs = zoo.tensor(rng.normal(size=(9, 3, 4))).log_softmax(2)
    for k, reading in enumerate(greedy_decode(log_probs, lengths=[9, 4, 0], blank=3)):
        rows = log_probs.numpy()[:[9, 4, 0][k], k]
        assert reading.labels == read_off(rows.argmax(1).tolist() if len(rows) else [], 3)
        assert reading.score == pytest.approx(rows.max(1).sum() if len(rows) else 0.0)


@pytest.mark.parametrize("call, message", [
    (lambda x: F.ctc_loss(x, zoo.ones(2, 2).long(), (5, 6), (2, 2)), r"input_lengths in \[0, 5\]"),
    (lambda x: F.ctc_loss(x, zoo.ones(2, 2).long(), (5, 5), (2, 3)), r"target_lengths in \[0, 2\]"),
    (lambda x: F.ctc_loss(x, zoo.ones(3).long(), (5, 5), (2, 2)), "wants 4 targets"),
    (lambda x: F.ctc_loss(x, zoo.ones(2, 2).long(), (5, 5), (2, 2), blank=4), "blank in"),
    (lambda x: F.ctc_loss(x, zoo.ones(2, 2), (5, 5), (2, 2)), "integer targets"),
    (lambda x: F.ctc_loss(x, zoo.ones(2, 2).long(), (5, 5), (2, 2), reduction="all"), "reduction"),
    (lambda x: greedy_decode(x, [5]), "wants 2 lengths"),
    (lambda x: beam_decode(x, beam_width=1, top=2), "beam_width"),
])
def test_wrong_calls_say_what_is_wrong(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(zoo.zeros(5, 2, 4))


def test_trains_a_small_network(rng):
    """Gradient descent on the loss makes the network read what it should."""
    logits = nn.Parameter(zoo.tensor(rng.normal(size=(8, 2, 4)) * 0.1))
    targets, optimizer = [[1, 2], [3, 3]], zoo.optim.SGD([logits], lr=2.0)
    for _ in range(60):
        optimizer.zero_grad()
        F.ctc_loss(logits.log_softmax(2), zoo.tensor(targets), (8, 8), (2, 2)).backward()
        optimizer.step()
    assert [r.labels for r in greedy_decode(logits.log_softmax(2))] == targets
