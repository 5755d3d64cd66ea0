"""Attention and transformer layers against torch: numbers, gradients, state_dicts, masks, dropout, refusals."""
import math

import numpy as np
import pytest

import zoo
from zoo import nn
from zoo.nn import functional as F  # noqa: N812
from zoo.ops import attention as contract
from zoo.ops import cuda
from zoo.ops.cuda import record
from zoo.ops.random import dropout_mask

ATOL = {"float32": 1e-5, "float64": 1e-11}


def close(ours, theirs, dtype="float64"):
    """Within the tolerance of the dtype times the largest absolute value."""
    ours, theirs = (np.asarray(x.detach().numpy()) for x in (ours, theirs))
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, atol=ATOL[dtype] * max(1.0, abs(theirs).max(initial=0.0)), rtol=0)


def both(rng, *shapes, dtype="float64"):
    """The same random arrays as leaves of zoo and of torch."""
    import torch
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    return ([zoo.tensor(a, requires_grad=True) for a in arrays],
            [torch.tensor(a, requires_grad=True) for a in arrays])


# -- the function

CASES = {
    "plain": dict(shapes=((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6))),
    "causal, longer": dict(shapes=((2, 3, 7, 4), (2, 3, 5, 4), (2, 3, 5, 6)), is_causal=True),
    "causal, shorter": dict(shapes=((2, 1, 3, 4), (2, 1, 6, 4), (2, 1, 6, 4)), is_causal=True, scale=0.3),
    "bool (L, S)": dict(shapes=((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)), mask=(5, 7), kind="bool"),
    "bool (B, 1, 1, S)": dict(shapes=((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)), mask=(2, 1, 1, 7), kind="bool"),
    "float (B, H, L, S)": dict(shapes=((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)), mask=(2, 3, 5, 7), kind="float"),
    "float (H, 1, S)": dict(shapes=((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)), mask=(3, 1, 7), kind="float"),
    "3-D": dict(shapes=((3, 5, 4), (3, 7, 4), (3, 7, 4))),
    "5-D": dict(shapes=((2, 2, 3, 5, 4), (2, 2, 3, 7, 4), (2, 2, 3, 7, 4)), mask=(2, 1, 3, 5, 7), kind="float"),
    "grouped": dict(shapes=((2, 6, 5, 4), (2, 2, 7, 4), (2, 2, 7, 3)), enable_gqa=True),
    "grouped, mask": dict(shapes=((2, 4, 5, 4), (2, 2, 5, 4), (2, 2, 5, 3)), mask=(1, 4, 5, 5), kind="float",
                          enable_gqa=True),
    "heads of each": dict(shapes=((2, 4, 5, 4), (2, 2, 7, 4), (2, 1, 7, 3)), enable_gqa=True),
    "grouped, 3-D": dict(shapes=((6, 5, 4), (2, 7, 4), (2, 7, 3)), enable_gqa=True),
    "one head for all": dict(shapes=((2, 6, 5, 4), (2, 1, 7, 4), (2, 1, 7, 4)), enable_gqa=True),
}


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_the_function_is_torchs(name, dtype, rng):
    import torch
    case = dict(CASES[name])
    shape, kind = case.pop("mask", None), case.pop("kind", "")
    ours, theirs = both(rng, *case.pop("shapes"), dtype=dtype)
    masks = [None, None]
    if kind == "bool":
        array = rng.random(shape) > 0.4
        array[..., 0] = True
        masks = [zoo.tensor(array), torch.tensor(array)]
    elif kind:
        (mine,), (other,) = both(rng, shape, dtype=dtype)
        masks = [mine, other]
        ours, theirs = [*ours, mine], [*theirs, other]
    y = F.scaled_dot_product_attention(*ours[:3], attn_mask=masks[0], **case)
    z = torch.nn.functional.scaled_dot_product_attention(*theirs[:3], attn_mask=masks[1], **case)
    close(y, z, dtype)
    g = rng.standard_normal(z.shape).astype(dtype)
    y.backward(zoo.tensor(g))
    z.backward(torch.tensor(g))
    for a, b in zip(ours, theirs, strict=True):
        close(a.grad, b.grad, dtype)


@pytest.mark.torch
def test_rows_that_see_nothing_are_zero_as_torchs(rng):
    import torch
    ours, theirs = both(rng, (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4))
    mask = np.ones((3, 5), bool)
    mask[1] = False
    y = F.scaled_dot_product_attention(*ours, attn_mask=zoo.tensor(mask))
    z = torch.nn.functional.scaled_dot_product_attention(*theirs, attn_mask=torch.tensor(mask))
    assert not y[:, :, 1].any()
    close(y, z)
    y.sum().backward()
    z.sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        close(a.grad, b.grad)


def test_dropout_is_dropouts(rng):
    """The weights that fall away are those of dropout_mask; the backward pass draws them again."""
    q, k, v = (rng.standard_normal(shape) for shape in ((2, 3, 9, 4), (2, 3, 11, 4), (2, 3, 11, 5)))
    zoo.manual_seed(11)
    y = F.scaled_dot_product_attention(*map(zoo.tensor, (q, k, v)), dropout_p=0.3)
    scores = q @ k.transpose(0, 1, 3, 2) / 2
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(y.numpy(), dropout_mask(weights, 0.3, 11, 0) @ v, atol=1e-12)
    assert (F.scaled_dot_product_attention(*map(zoo.tensor, (q, k, v)), dropout_p=0.3) != y).any()
    leaves = [zoo.tensor(a, requires_grad=True) for a in (q[:1, :1, :3], k[:1, :1, :4], v[:1, :1, :4])]
    function = lambda *xs: contract.attention(*xs, None, True, 0.5, 0.3, 5, 1)[0]  # noqa: E731
    assert zoo.autograd.gradcheck(function, leaves) and zoo.autograd.gradgradcheck(function, leaves)


@pytest.mark.parametrize("causal", [False, True])
def test_blocks_do_not_matter(causal, rng, monkeypatch):
    """One block for all, and a row at a time: the same numbers, dropout and its gradients too."""
    arrays = [rng.standard_normal((2, 3, 9, 4)) for _ in range(3)]
    bias, found = rng.standard_normal((2, 1, 9, 9)), []
    for cells in (1 << 20, 60, 1):
        monkeypatch.setattr(contract, "CELLS", cells)
        leaves = [zoo.tensor(a, requires_grad=True) for a in (*arrays, bias)]
        y = contract.attention(*leaves, causal, 0.5, 0.2, 3, 4)[0]
        (y * y).sum().backward()
        found.append([y, *(x.grad for x in leaves)])
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            close(a, b)


def test_a_long_sequence_takes_little_memory():
    import tracemalloc
    x = zoo.randn(1, 1, 4096, 8)
    tracemalloc.start()
    F.scaled_dot_product_attention(x, x, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4096 * 4096 * 4 / 20                       # the whole matrix has 64 MB


@pytest.mark.parametrize(("change", "words"), [
    (dict(key=(2, 3, 7, 5)), "key .B, H, S, E."), (dict(value=(2, 3, 6, 4)), "value .B, H, S, V."),
    (dict(key=(2, 2, 7, 4)), "leading dimensions that broadcast"), (dict(query=(4,)), r"query \(\*, L, E\)"),
    (dict(attn_mask=zoo.ones(5, 6)), r"broadcasts to \(2, 3, 5, 7\), got \(5, 6\)"),
    (dict(attn_mask=zoo.ones(5, 7, dtype=zoo.int64)), "bool or float32, got int64"),
    (dict(attn_mask=zoo.ones(5, 7), is_causal=True), "got both"), (dict(dropout_p=1.5), "between 0 and 1"),
    (dict(key=(2, 2, 7, 4), value=(2, 2, 7, 4), enable_gqa=True), "enable_gqa wants a multiple"),
])
def test_wrong_arguments_of_the_function(change, words):
    shapes = {"query": (2, 3, 5, 4), "key": (2, 3, 7, 4), "value": (2, 3, 7, 4)}
    shapes = {name: zoo.ones(*change.pop(name, shape)) for name, shape in shapes.items()}
    with pytest.raises((ValueError, TypeError), match=words):
        F.scaled_dot_product_attention(**shapes, **change)


# -- layers

def twins(name, *args, double=True, **options):
    """A layer of zoo and torch's, with torch's weights taken over; biases too, which start as 0."""
    import torch
    torch.manual_seed(0)
    theirs, ours = getattr(torch.nn, name)(*args, **options), getattr(nn, name)(*args, **options)
    theirs = theirs.double() if double else theirs
    with torch.no_grad():
        for p in theirs.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    state = theirs.state_dict()
    assert [(k, tuple(v.shape)) for k, v in state.items()] == [(k, v.shape) for k, v in ours.state_dict().items()]
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    ours = ours.double() if double else ours
    ours.load_state_dict({k: zoo.tensor(v.numpy().copy()) for k, v in state.items()})
    return ours, theirs


def compare(ours, theirs, inputs, options, outputs=lambda y: [y]):
    """Outputs and all gradients; inputs are pairs of lists, options arrays or values."""
    import torch
    mine, others = ({k: kind(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
                    for kind in (zoo.tensor, torch.tensor))
    ys, zs = outputs(ours(*inputs[0], **mine)), outputs(theirs(*inputs[1], **others))
    for y, z in zip(ys, zs, strict=True):
        close(y, z)
    sum((y * y).sum() for y in ys).backward()
    sum((z * z).sum() for z in zs).backward()
    for a, b in zip(inputs[0], inputs[1], strict=True):
        close(a.grad, b.grad)
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None), name
        if q.grad is not None:
            close(p.grad, q.grad)


PADDING = np.array([[False, False, False, True], [False] * 4])


@pytest.mark.torch
@pytest.mark.parametrize("weights", ["averaged", "each", "none"])
@pytest.mark.parametrize(("options", "masks"), [
    ({}, {}),
    ({"batch_first": True, "bias": False}, {"attn_mask": np.triu(np.ones((3, 4), bool), 2)}),
    ({"kdim": 5, "vdim": 7}, {"key_padding_mask": PADDING}),
    ({"add_bias_kv": True, "add_zero_attn": True},
     {"attn_mask": np.linspace(-2, 2, 48).reshape(4, 3, 4), "key_padding_mask": np.where(PADDING, -np.inf, 0.0)}),
])
def test_multihead_attention_is_torchs(options, masks, weights, rng):
    ours, theirs = twins("MultiheadAttention", 6, 2, **options)
    shapes = (3, 2, 6), (4, 2, options.get("kdim", 6)), (4, 2, options.get("vdim", 6))
    if options.get("batch_first"):
        shapes = [(s[1], s[0], s[2]) for s in shapes]
    masks = masks | {"need_weights": weights != "none", "average_attn_weights": weights == "averaged"}
    compare(ours, theirs, both(rng, *shapes), masks, lambda y: [part for part in y if part is not None])


@pytest.mark.torch
@pytest.mark.parametrize("case", ["one weight", "separate", "static"])
def test_multi_head_attention_forward_is_torchs(case, rng):
    """torch's function, argument for argument; nn.MultiheadAttention's tests have its masks."""
    import torch
    separate, widths = case == "separate", {"separate": (5, 7)}.get(case, (6, 6))
    shapes = [(3, 2, 6), (4, 2, widths[0]), (4, 2, widths[1]), (18, 6), (18,), (1, 1, 6), (1, 1, 6), (6, 6), (6,)]
    shapes += [(6, 6), (6, widths[0]), (6, widths[1])] if separate else []
    shapes += [(4, 4, 3), (4, 4, 3)] if case == "static" else []
    results = []
    for lib, tensors in zip((zoo, torch), both(rng, *shapes), strict=True):
        q, k, v, w, b, bias_k, bias_v, out, out_bias, *rest = tensors
        extra = (bias_k, bias_v, True) if case == "one weight" else (None, None, False)
        options = dict(zip(("q_proj_weight", "k_proj_weight", "v_proj_weight") if separate else
                           ("static_k", "static_v"), rest, strict=False))
        y, weights = lib.nn.functional.multi_head_attention_forward(
            q, k, v, 6, 2, None if separate else w, b, *extra, 0.5, out, out_bias, training=False,
            attn_mask=lib.tensor(np.triu(np.ones((3, 4), bool), 2)), use_separate_proj_weight=separate,
            average_attn_weights=False, **options)
        ((y * y).sum() + (weights * weights).sum()).backward()
        results.append([y, weights, *(t.grad for t in tensors if t.grad is not None)])
    for ours, theirs in zip(*results, strict=True):
        close(ours, theirs)
    assert len(results[0]) >= 8


@pytest.mark.torch
def test_multihead_attention_to_itself_and_without_batch(rng):
    ours, theirs = twins("MultiheadAttention", 6, 3)
    (x,), (z,) = both(rng, (5, 6))
    for a, b in zip(ours(x, x, x), theirs(z, z, z), strict=True):
        close(a, b)
    (x,), (z,) = both(rng, (5, 2, 6))
    mask = np.triu(np.ones((5, 5), bool), 1)
    import torch
    y = ours(x, x, x, attn_mask=zoo.tensor(mask), need_weights=False, is_causal=True)[0]
    close(y, theirs(z, z, z, attn_mask=torch.tensor(mask), need_weights=False, is_causal=True)[0])


@pytest.mark.torch
@pytest.mark.parametrize("options", [{}, {"norm_first": True, "activation": "gelu"},
                                     {"batch_first": True, "bias": False}])
def test_transformer_layers_are_torchs(options, rng):
    options = {"dim_feedforward": 10, "dropout": 0.0} | options
    order = (lambda *s: (s[1], s[0], s[2])) if options.get("batch_first") else (lambda *s: s)
    causal = np.triu(np.full((3, 3), -np.inf), 1)
    ours, theirs = twins("TransformerEncoderLayer", 6, 2, **options)
    compare(ours, theirs, both(rng, order(4, 2, 6)), {"src_key_padding_mask": PADDING})
    ours, theirs = twins("TransformerDecoderLayer", 6, 2, **options)
    compare(ours, theirs, both(rng, order(3, 2, 6), order(4, 2, 6)),
            {"tgt_mask": causal, "memory_key_padding_mask": np.where(PADDING, -np.inf, 0.0), "tgt_is_causal": True})


@pytest.mark.torch
def test_the_transformer_is_torchs(rng):
    import torch
    with pytest.warns(UserWarning, match="nested"):            # torch's, about its own fast path
        ours, theirs = twins("Transformer", 6, 2, 2, 2, 10, 0.0)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    np.testing.assert_array_equal(mask.numpy(), torch.nn.Transformer.generate_square_subsequent_mask(3).numpy())
    compare(ours, theirs, both(rng, (4, 2, 6), (3, 2, 6)), {"tgt_mask": mask.numpy().astype(np.float64)})
    inner = [m for m in ours.modules() if isinstance(m, nn.TransformerEncoderLayer)]
    assert len(inner) == 2 and inner[0].linear1.weight is not inner[1].linear1.weight


def test_dropout_of_layers_follows_the_mode():
    zoo.manual_seed(0)
    layer, x = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5), zoo.randn(5, 3, 8)
    assert (layer(x) != layer(x)).any()
    layer.eval()
    assert (layer(x) == layer(x)).all()


def test_initial_weights():
    zoo.manual_seed(0)
    layer = nn.MultiheadAttention(64, 4, add_bias_kv=True)
    bound = math.sqrt(6 / (64 + 3 * 64))
    weight = layer.in_proj_weight.detach().numpy()
    assert abs(weight).max() <= bound and weight.std() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert not layer.in_proj_bias.any() and not layer.out_proj.bias.any()
    assert layer.bias_k.detach().numpy().std() == pytest.approx(math.sqrt(2 / (64 + 64)), rel=0.3)


X = zoo.ones(4, 2, 6)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: nn.MultiheadAttention(6, 4), "embed_dim divisible by num_heads"),
    (lambda: nn.MultiheadAttention(6, 2)(X, X, zoo.ones(4, 2, 5)), "value .S, N, 6."),
    (lambda: nn.MultiheadAttention(6, 2)(X, zoo.ones(4, 3, 6), zoo.ones(4, 3, 6)), "key .S, N, 6."),
    (lambda: nn.MultiheadAttention(6, 2)(X, X, X, is_causal=True), "attn_mask with is_causal"),
    (lambda: nn.MultiheadAttention(6, 2)(X, X, X, attn_mask=zoo.ones(4, 5)), r"attn_mask \(4, 4\), got \(4, 5\)"),
    (lambda: nn.MultiheadAttention(6, 2)(X, X, X, zoo.ones(4, 2)), r"key_padding_mask \(2, 4\), got \(4, 2\)"),
    (lambda: nn.MultiheadAttention(6, 2)(X, X, X, attn_mask=zoo.ones(4, 4, dtype=zoo.int64)), "bool or floating"),
    (lambda: nn.TransformerEncoderLayer(6, 2, activation="tanh"), "activation relu, gelu"),
    (lambda: nn.Transformer(6, 2, 1, 1, 8)(X, zoo.ones(4, 3, 6)), "one batch"),
])
def test_wrong_arguments_of_layers(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("causal", "length", "keys", "p"), [(False, 70, 75, 0.0), (True, 130, 75, 0.3),
                                                             (True, 70, 140, 0.3)])
def test_kernels_of_several_tiles(dtype, causal, length, keys, p, rng):
    """Sizes beyond one tile, and tiles that end inside, dropout's words drawn alone and for four neighbours."""
    arrays = [rng.standard_normal(shape) for shape in ((1, 2, length, 8), (1, 2, keys, 8), (1, 2, keys, 20))]
    bias = rng.standard_normal((1, 2, 1, keys))
    found = []
    for device in ("cpu", "cuda"):
        leaves = [zoo.tensor(a, dtype=getattr(zoo, dtype), device=device, requires_grad=True) for a in (*arrays, bias)]
        y = contract.attention(*leaves, causal, 0.35, p, 3, 4)[0]
        (y * y).sum().backward()
        found.append([x.detach().cpu().double().numpy() for x in (y, *(x.grad for x in leaves))])
    for a, b in zip(*found, strict=True):
        # halves: the kernel rounds the weights to the dtype before they meet the values, NumPy does not
        limit = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
        np.testing.assert_allclose(b, a, atol=limit * abs(a).max(), rtol=0)


@pytest.mark.cuda
@pytest.mark.parametrize(("causal", "p"), [(False, 0.0), (True, 0.3)])
def test_heads_that_share_keys_are_not_copied(causal, p, rng):
    """Grouped queries: one launch forward, backward two more than ever; numbers of repeated heads, several tiles."""
    shapes = (2, 6, 70, 8), (2, 2, 75, 8), (2, 2, 75, 5), (2, 6, 70, 5)
    query, key, value, dy = (rng.standard_normal(shape) for shape in shapes)
    found, launches = [], []
    for shared in (True, False):
        leaves = [zoo.tensor(a, dtype=zoo.float32, device="cuda", requires_grad=True) for a in (query, key, value)]
        k, v = leaves[1:] if shared else [x.repeat_interleave(3, 1) for x in leaves[1:]]
        with record.listening(lambda kernel, grid, arguments: launches.append(kernel.function.__name__)):
            y = contract.attention(leaves[0], k, v, None, causal, 0.35, p, 3, 4)[0]
            y.backward(zoo.tensor(dy, dtype=zoo.float32, device="cuda"))
        if shared:
            assert launches == ["attend", "row_products", "grad_query", "grad_key_value", "fold", "fold"]
        found.append([x.detach().cpu().numpy() for x in (y, *(x.grad for x in leaves))])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5 * abs(b).max(), rtol=0)


@pytest.mark.cuda
@pytest.mark.parametrize("width", [264, 520])
def test_wide_heads_run_in_other_ops(width, rng, monkeypatch):
    """Above 512 always; gradients of float64 where the table has no tile for them, with the draws of the forward."""
    names, launch = set(), cuda.launch

    def launched(kernel, *args, **kwargs):
        names.add(kernel.__name__)
        return launch(kernel, *args, **kwargs)

    monkeypatch.setattr(cuda, "launch", launched)
    x = zoo.tensor(rng.standard_normal((1, 1, 3, width)), requires_grad=True)
    y = x.detach().to("cuda").requires_grad_()
    for leaf in (x, y):
        contract.attention(leaf, leaf, leaf, None, True, 0.05, 0.3, 3, 4)[0].square().sum().backward()
    close(y.grad.cpu(), x.grad)
    kernels = {"grad_query", "grad_key_value"} | ({"attend"} if width > 512 else set())
    assert names and names.isdisjoint(kernels)
