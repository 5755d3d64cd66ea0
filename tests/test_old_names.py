"""Names that older programs for torch use: windows, x.new, resize_, range, default tensor types."""
import numpy as np
import pytest

import zoo


@pytest.mark.torch
@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_windows_equal_torchs(name):
    torch = pytest.importorskip("torch")
    for length in (0, 1, 2, 5, 64):
        for periodic in (True, False):
            ours, theirs = (getattr(lib, f"{name}_window")(length, periodic, dtype=lib.float64) for lib in (zoo, torch))
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=0, atol=1e-12)
    assert getattr(zoo, f"{name}_window")(4).dtype == zoo.float32
    with pytest.raises(ValueError, match=f"{name if name != 'hann' else 'hamming'}_window: wants a window_length"):
        getattr(zoo, f"{name}_window")(-1)
    with pytest.raises(TypeError, match="floating"):
        getattr(zoo, f"{name}_window")(4, dtype=zoo.int64)


def test_new_has_the_dtype_of_its_tensor():
    x = zoo.ones(2, dtype=zoo.float64)
    assert x.new([1, 2]).dtype == zoo.float64 and x.new([1, 2]).tolist() == [1, 2]
    assert x.new(2, 3).shape == x.new(zoo.ones(2, 3).shape).shape == (2, 3) and x.new().shape == (0,)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_resize_keeps_the_first_elements(device):
    x = zoo.arange(6, device=device)
    assert x.resize_(2, 2) is x and x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_(5).shape == (5,) and x[:4].tolist() == [0, 1, 2, 3]
    assert x.resize_as_(zoo.zeros(2, 1)).tolist() == [[0], [1]]
    y = zoo.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        y.resize_(3)


@pytest.mark.torch
@pytest.mark.parametrize("args", [(0, 4), (1, 2, 0.25), (3, -2, -2), (0.0, 1.0, 0.3)])
def test_range_includes_its_end(args):
    torch = pytest.importorskip("torch")
    with pytest.warns(UserWarning, match="range is deprecated"):
        ours, theirs = zoo.range(*args), torch.range(*args)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="range: wants a step"):
        zoo.range(1, 2, -1)


def test_the_default_type_by_its_old_name():
    try:
        zoo.set_default_tensor_type("torch.DoubleTensor")
        assert zoo.tensor([1.0]).dtype == zoo.float64
        zoo.set_default_tensor_type(zoo.HalfTensor)
        assert zoo.tensor([1.0]).dtype == zoo.float16
        for wrong in ("torch.LongTensor", "FloatTensor", zoo.float32):
            with pytest.raises(TypeError, match="set_default_tensor_type: wants"):
                zoo.set_default_tensor_type(wrong)
    finally:
        zoo.set_default_tensor_type(zoo.FloatTensor)


def test_small_old_names():
    x = zoo.tensor([[1.0, -2.0], [0.5, 3.0]])
    assert zoo.equal(x.adjoint(), x.mT) and zoo.is_signed(x) and not zoo.is_signed(x.bool())
    assert zoo.is_nonzero(zoo.tensor(2)) and not zoo.is_nonzero(zoo.tensor([0.0]))
    y = zoo.tensor([0.5])
    assert zoo.arctan_(y) is y and y.item() == pytest.approx(np.arctan(0.5)) and zoo.negative_(y).item() < 0
