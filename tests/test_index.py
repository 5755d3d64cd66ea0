"""x[...] read and written, gather, scatter, masks and embedding beside torch; order of sums; indices out of range."""
import numpy as np
import pytest

import zoo

INTERPRET = pytest.mark.cuda
NAMES = {"N": None, "E": Ellipsis}
INDICES = [
    "0", "-1", "0, 1", "0, 1, 2, 1", "1:", ":, 2", "..., 1", "None, ..., None", ":, None, 1", "0, ..., 0:5:2", "i",
    ":, i", "i2", "i, i", "i, :, i % 2",
    ":, i, i", "0, :, i", "i, 0", ":, i, 0, k", "i, None, i", "None, i", "..., i % 2", "[0, 2]", ":, [0, 1, 3]",
    "[0, 1], [2, 3]",
    "[True, False, True]", "m34", ":, m4", ":, m45", ":, :, m5, 0", "m", "m34, :, 0", "True", "False", "True, 0",
    "0, True", ":, True, i",
    "m34[0, 0]", "i[1]", "k[0], i", ":, k[0], i", "k[:1], m4 & m4", "i2, :, i2 % 2", "0:2, m4, None, k",
    "i[:, None], n3", "i, :, 1:4, k", "[]",
]
SHAPE = (3, 4, 5, 2)
WRONG = ["1.5", "f", "7", "0, 0, 0, 0, 0", "i + 7", "m4", "::-1", "i[0] + 7", "k, n3", "{}", "-i - 3", "0, -5",
         "m[:, :3]", "'a'"]
CALLS = [
    "m.gather(x, 1, j)", "x.scatter(1, j0, y)", "x.scatter(1, j0, 2.5)", "x.scatter_add(1, j, y)",
    
    "x.scatter_reduce(1, j, y, 'prod')", "x.scatter_reduce(1, j, y, 'mean', include_self=False)",
    "x.scatter_reduce(1, j, y, 'amax')",
    "x.index_select(1, r)", "x.index_add(0, r[:2], x[1:], alpha=3)", "x.index_copy(1, r[1:3], x[:, 1:3])",
    "x.index_fill(1, r, 2.0)",
    "x.index_put((r,), y[0, 0], accumulate=True)", "x.take(j)",
    "x.put(r, y[0], True)",
    "m.take_along_dim(x, j[:1], 1)", "x.masked_fill(x > 0, 7)", "x.masked_select(x > 0)", "x.masked_scatter(x > 0, y)",
    "x.nonzero()",
    "(x > 0).nonzero(as_tuple=True)[1]", "m.argwhere(x > 0)", "m.where(x > 0, x, y[0, 0])", "x.where(x > 0, 3.0)",
    "m.nn.functional.embedding(j, y, padding_idx=1)",
    "m.nn.functional.embedding(j, y, padding_idx=2, scale_grad_by_freq=True)",
    "m.nn.functional.embedding(j, y.detach().clone(), max_norm=0.5)", "m.nn.functional.one_hot(r)",
    "m.unravel_index(r, (2, 3))[1]",
]
WRONG_CALLS = [
    "m.gather(x, 1, j + 4)", "m.gather(x, 1, j - 4)", "m.gather(x, 1, x)", "m.gather(x, 2, j)", "m.gather(x, 1, r)",
    "m.gather(x[:2], 1, j)",
    "x.scatter(1, j, y[:, :2])", "x.scatter(1, j + 4, y)", "x.scatter_add(1, j, y.double())",
    "x.scatter_reduce(1, j, y, 'median')",
    "x.index_select(1, j)", "x.index_select(1, r + 9)", "x.index_select(0, r.float())", "x.index_add(0, r, y[:2])",
    "x.index_copy(0, r[:2], y.double())",
    "x.index_fill(0, r, y)", "x.index_put((r, j[:, :2]), x)", "x.take(r + 99)", "x.take(x)", "x.put(r, y)",
    "x.masked_fill(r, 1)",
    "x.masked_fill(x > 0, y)", "x.masked_select(j)", "x.masked_scatter(x > -99, y[0])", "x.masked_scatter(x > 0, r)",
    "m.where(x, x, x)",
    "m.nn.functional.embedding(j + 9, y)", "m.nn.functional.embedding(x, y)",
    
    "m.nn.functional.one_hot(r, 2)", "m.nn.functional.one_hot(x)",
]


def numbers(text: str, value) -> dict:
    """The index arrays of INDICES, as `value` makes them."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: value(rng.uniform(size=shape) > 0.5)  # noqa: E731
    return {"i": value(np.array([0, 2])), "i2": value(rng.integers(-2, 3, (2, 3))), "k": value(np.array([1, 0])),
            "n3": value(np.array([0, 1, 3])), "f": value(np.array([1.5])), "m34": draw(3, 4), "m4": draw(4),
            "m5": draw(5),
            "m45": draw(4, 5), "m": draw(*SHAPE)}


class Index:
    def __getitem__(self, index):
        return index


def read(text: str, value):
    return eval(f"x[{text}]", {"x": Index(), **numbers(text, value)})


def base() -> np.ndarray:
    return np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)


def getitem_beside_torch(text: str, device: str):
    torch = pytest.importorskip("torch")
    x, t = zoo.from_numpy(base()).to(device).requires_grad_(), torch.from_numpy(base()).requires_grad_()
    y, want = x[read(text, lambda a: zoo.from_numpy(a).to(device))], t[read(text, torch.from_numpy)]
    np.testing.assert_array_equal(y.detach().cpu().numpy(), want.detach().numpy())
    (y * y).sum().backward()
    (want * want).sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), t.grad.numpy(), rtol=1e-6)


def setitem_beside_torch(text: str, device: str):
    """Numbers, arrays and broadcast arrays; and the gradients of what was written and of what was left."""
    torch = pytest.importorskip("torch")
    index, theirs = read(text, lambda a: zoo.from_numpy(a).to(device)), read(text, torch.from_numpy)
    shape = tuple(torch.from_numpy(base())[theirs].shape)
    rng = np.random.default_rng(2)
    for value in (7.5, rng.normal(size=shape), rng.normal(size=(1, *shape))):
        value = value if isinstance(value, float) else np.asarray(value, np.float32)
        x, t = zoo.from_numpy(base()).to(device).requires_grad_(), torch.from_numpy(base()).requires_grad_()
        y, want = x * 2, t * 2
        v = value if isinstance(value, float) else zoo.from_numpy(value).to(device).requires_grad_()
        w = value if isinstance(value, float) else torch.from_numpy(value).requires_grad_()
        y[index], want[theirs] = v, w
        np.testing.assert_array_equal(y.detach().cpu().numpy(), want.detach().numpy())
        (y * y).sum().backward()
        (want * want).sum().backward()
        np.testing.assert_allclose(x.grad.cpu().numpy(), t.grad.numpy(), rtol=1e-6)
        if not isinstance(value, float) and w.grad is not None:
            np.testing.assert_allclose(v.grad.cpu().numpy(), w.grad.numpy(), rtol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("text", INDICES)
def test_getitem_beside_torch(text):
    getitem_beside_torch(text, "cpu")


@pytest.mark.torch
@pytest.mark.parametrize("text", [t for t in INDICES if t not in ("i2",
                                                                  "i2, :, i2 % 2")])      # these write twice to a place
def test_setitem_beside_torch(text):
    setitem_beside_torch(text, "cpu")


@INTERPRET
@pytest.mark.torch
@pytest.mark.parametrize("text", INDICES[::3])
def test_getitem_on_the_device(text):
    getitem_beside_torch(text, "cuda")


@INTERPRET
@pytest.mark.torch
@pytest.mark.parametrize("text", ["1:", ":, i, 0, k", "m34", "0:2, m4, None, k", "0, ..., 0:5:2", "i[1]"])
def test_setitem_on_the_device(text):
    setitem_beside_torch(text, "cuda")


@pytest.mark.torch
@pytest.mark.parametrize("text", WRONG)
def test_wrong_indices_raise_what_torch_raises(text):
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:  # noqa: B017  (whatever torch raises)
        torch.from_numpy(base())[read(text, torch.from_numpy)]
    with pytest.raises((ValueError, TypeError), match="getitem|index") as mine:
        zoo.from_numpy(base())[read(text, zoo.from_numpy)]
    assert isinstance(mine.value, theirs.type), f"torch: {theirs.value!r}, zoo: {mine.value!r}"


def scene(module, value, requires_grad=True) -> dict:
    rng = np.random.default_rng(5)
    x, y = value(rng.normal(size=(3, 4)).astype(np.float32)), value(rng.normal(size=(3, 3)).astype(np.float32))
    if requires_grad:
        x, y = x.requires_grad_(), y.requires_grad_()
    j = rng.integers(0, 3, (3, 3))
    return {"m": module, "x": x, "y": y, "j": value(j), "j0": value(np.argsort(rng.uniform(size=(3, 4)), 1)[:,
                                                                                                            :3].copy()),
            "r": value(np.array([2, 0, 2]))}


@pytest.mark.torch
@pytest.mark.parametrize("text", CALLS)
def test_functions_beside_torch(text):
    """Value, and the gradient of a sum of squares by x and y."""
    torch = pytest.importorskip("torch")
    if "index_put" in text:
        text = text.replace("y[0, 0]", "y[0, :1]")
    ours, theirs = scene(zoo, zoo.from_numpy), scene(torch, torch.from_numpy)
    got, want = eval(text, ours), eval(text, theirs)
    assert str(got.dtype) == str(want.dtype)[6:]
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-6)
    if want.requires_grad:
        (got * got).sum().backward()
        (want * want).sum().backward()
        for name in "xy":
            assert (ours[name].grad is None) == (theirs[name].grad is None)
            if ours[name].grad is not None:
                np.testing.assert_allclose(ours[name].grad.numpy(), theirs[name].grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("text", WRONG_CALLS)
def test_wrong_calls_raise_what_torch_raises(text):
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:  # noqa: B017  (whatever torch raises)
        eval(text, scene(torch, torch.from_numpy, False))
    with pytest.raises((ValueError, TypeError)) as mine:
        eval(text, scene(zoo, zoo.from_numpy, False))
    assert isinstance(mine.value, theirs.type), f"torch: {theirs.value!r}, zoo: {mine.value!r}"


def test_max_norm_shortens_the_rows_used():
    weight = zoo.tensor([[3.0, 4.0], [6.0, 8.0], [0.3, 0.4]])
    zoo.nn.functional.embedding(zoo.tensor([1, 1, 2]), weight, max_norm=5.0)
    np.testing.assert_allclose(weight.numpy(), [[3, 4], [3, 4], [0.3, 0.4]], rtol=1e-6)


def test_sums_have_one_order():
    """Adding at repeated indices gives the same bits every time, those of a loop."""
    rng = np.random.default_rng(0)
    index, values = rng.integers(0, 7, 5000), (rng.normal(size=5000) * 1e6).astype(np.float32)
    want = np.zeros(7, np.float32)
    for i, v in zip(index, values, strict=True):
        want[i] += v
    got = zoo.zeros(7).index_add(0, zoo.from_numpy(index), zoo.from_numpy(values))
    np.testing.assert_array_equal(got.numpy(), want)


def test_wide_rows_are_added_as_numpy_adds_them():
    """Rows that are long enough to be added one by one: the same bits."""
    rng = np.random.default_rng(0)
    rows, v = rng.integers(-5, 5, 40), rng.normal(size=(40, 512)).astype(np.float32)
    wanted = np.zeros((5, 512), np.float32)
    np.add.at(wanted, rows, v)
    weight = zoo.zeros(5, 512).requires_grad_()
    weight[zoo.tensor(rows)].backward(zoo.tensor(v))
    np.testing.assert_array_equal(weight.grad.numpy(), wanted)


@INTERPRET
@pytest.mark.parametrize("rank", [2**15, 0])
@pytest.mark.parametrize("inner", [1, 3])
def test_sorted_segments_keep_the_order(monkeypatch, rank, inner):
    """The way of long indices, sorted by counting and by the sort op: the bits of the CPU."""
    from zoo.ops import index_gpu
    monkeypatch.setattr(index_gpu, "RANK", rank)
    rng = np.random.default_rng(0)
    index, values = rng.integers(-40, 40, 300), (rng.normal(size=(300, inner)) * 1e6).astype(np.float32)
    want = zoo.zeros(40, inner).index_add(0, zoo.from_numpy(index), zoo.from_numpy(values))
    got = zoo.zeros(40, inner).cuda().index_add(0, zoo.from_numpy(index).cuda(), zoo.from_numpy(values).cuda())
    np.testing.assert_array_equal(got.cpu().numpy(), want.numpy())


@INTERPRET
def test_long_lines_are_sorted_too(monkeypatch):
    from zoo.ops import index_gpu
    monkeypatch.setattr(index_gpu, "FEW", 2)
    monkeypatch.setattr(index_gpu, "WORK", 0)
    rng = np.random.default_rng(0)
    x, index, src = rng.normal(size=(3, 5, 2)), rng.integers(0, 5, (3, 9, 2)), rng.normal(size=(3, 9, 2))
    for reduce in ("sum", "prod", "amax", "mean"):
        want = zoo.from_numpy(x).scatter_reduce(1, zoo.from_numpy(index), zoo.from_numpy(src), reduce,
                                                include_self=False)
        moved = [zoo.from_numpy(a).cuda() for a in (x, index, src)]
        got = moved[0].scatter_reduce(1, *moved[1:], reduce, include_self=False)
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-12)


@INTERPRET
def test_out_of_range_on_the_device_stays_inside():
    """A kernel cannot raise: reading takes the nearest element, writing leaves it out."""
    x, far = zoo.arange(4.0).cuda(), zoo.tensor([1, 99, -99]).cuda()
    assert x[far].tolist() == [1.0, 3.0, 0.0]
    assert x.index_add(0, far, zoo.ones(3).cuda()).tolist() == [0.0, 2.0, 2.0, 3.0]
    assert x.scatter(0, far, zoo.ones(3).cuda() * 9).tolist() == [0.0, 9.0, 2.0, 3.0]
    pair = zoo.tensor([1, 5, 0]).cuda(), zoo.tensor([1, 0, 7]).cuda()
    assert x.view(2, 2)[pair].tolist() == [3.0, 0.0, 0.0]
    assert x.view(2, 2).index_put(pair, zoo.tensor(9.0).cuda()).tolist() == [[0.0, 1.0], [2.0, 9.0]]
    assert x.view(2, 2).index_put(pair, zoo.tensor(9.0).cuda(), True).tolist() == [[0.0, 1.0], [2.0, 12.0]]


def test_an_index_on_the_cpu_reads_the_device_and_lists_are_indices():
    x = zoo.arange(6).view(2, 3)
    assert x[[1, 0], [2, 0]].tolist() == [5, 0]
    assert x[np.array([True, False])].tolist() == [[0, 1, 2]]
    assert x[np.int64(1), zoo.tensor(2)].item() == 5
    assert x[[np.int64(1), np.int8(0)]].tolist() == [[3, 4, 5], [0, 1, 2]]


def test_an_index_written_to_after_use():
    """Indexing with it keeps what it was; a function that names its input raises, as for any saved value."""
    x, i = zoo.arange(4.0).requires_grad_(), zoo.tensor([0, 1])
    y = x[i].sum() + x[zoo.tensor([True, False, True, False])].sum()
    z = x.index_select(0, i).sum()
    i += 2
    y.backward()
    assert x.grad.tolist() == [2.0, 1.0, 1.0, 0.0]
    with pytest.raises(RuntimeError, match="inplace"):
        z.backward()
