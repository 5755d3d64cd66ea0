"""Creation and random numbers: torch's values on the CPU, the same on the device."""
import numpy as np
import pytest

import zoo
from zoo.autograd.dropout import dropout
from zoo.ops import random as draws

CASES = [
    lambda **o: zoo.arange(7, **o),
    lambda **o: zoo.arange(1, 9, 2.5, **o),
    lambda **o: zoo.arange(5, 0, -1, **o),
    lambda **o: zoo.linspace(-3, 10, 7, **o),
    lambda **o: zoo.linspace(0, 10, 5, dtype=zoo.int64, **o),
    lambda **o: zoo.eye(3, 5, **o),
    lambda **o: zoo.full((2, 3), 7, **o),
    lambda **o: zoo.full((2,), 2.5, dtype=zoo.bfloat16, **o),
    lambda **o: zoo.zeros(0, 3, **o),
    lambda **o: zoo.ones(2, 3, dtype=zoo.bool, **o),
    lambda **o: zoo.linspace(2, 5, 1, **o),
]
RANDOM = [
    lambda **o: zoo.rand(1031, **o),
    lambda **o: zoo.rand(7, 3, dtype=zoo.float64, **o),
    lambda **o: zoo.rand(33, dtype=zoo.float16, **o),
    lambda **o: zoo.rand(33, dtype=zoo.bfloat16, **o),
    lambda **o: zoo.randint(-5, 90, (1031,), **o),
    lambda **o: zoo.randint(0, 1 << 45, (33,), **o),
    lambda **o: zoo.randint(3, (5, 5), dtype=zoo.int8, **o),
    lambda **o: zoo.randperm(257, **o),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.torch
def test_creation_equals_torch(case):
    import torch

    def made(module):
        namespace, real = {"zoo": module, "__builtins__": __builtins__}, CASES[case]
        return type(real)(real.__code__, namespace)()
    want, got = made(torch), made(zoo)
    assert str(want.dtype).split(".")[1] == str(got.dtype)
    np.testing.assert_allclose(got.float().numpy(), want.float().numpy(), rtol=1e-6)


@pytest.mark.cuda
@pytest.mark.parametrize("case", range(len(CASES + RANDOM)))
def test_the_same_bits_on_the_device(case):
    """Promise 2: integers and uniforms are equal bit for bit."""
    make = (CASES + RANDOM)[case]
    zoo.manual_seed(1 << 63 | 5)
    cpu = make()
    zoo.manual_seed(1 << 63 | 5)
    device = make(device="cuda")
    assert device.is_cuda and device.dtype == cpu.dtype
    np.testing.assert_array_equal(device.cpu().numpy(), cpu.numpy())


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [zoo.float32, zoo.float64, zoo.bfloat16])
def test_normals_agree_on_the_device(dtype):
    zoo.manual_seed(11)
    cpu = zoo.randn(1031, dtype=dtype)
    zoo.manual_seed(11)
    device = zoo.randn(1031, dtype=dtype, device="cuda").cpu()
    tolerance = 2e-6 if dtype != zoo.bfloat16 else 8e-3      # a unit of bfloat16 near 1
    np.testing.assert_allclose(device.double().numpy(), cpu.double().numpy(), atol=tolerance, rtol=tolerance)


def test_philox_known_answers():
    """The vectors of the Random123 distribution (kat_vectors, philox4x32 10)."""
    def block(counter, key):
        blocks = np.array([counter[0] | counter[1] << 32], np.uint64)
        return [f"{w:08x}" for w in draws.philox(key[0] | key[1] << 32, counter[2] | counter[3] << 32, blocks)[0]]
    assert block((0, 0, 0, 0), (0, 0)) == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    full = 0xFFFFFFFF
    assert block((full,) * 4, (full,) * 2) == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
    assert block(*pi) == ["d16cfe09", "94fdcceb", "5001e420", "24126ea1"]


def test_distributions():
    zoo.manual_seed(0)
    n = 40_000
    u, z = zoo.rand(n).numpy(), zoo.randn(n).numpy()
    assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.01 and abs(u.var() - 1 / 12) < 0.002
    assert abs(z.mean()) < 0.02 and abs(z.std() - 1) < 0.02 and abs((z ** 4).mean() - 3) < 0.15
    e = zoo.empty(n).exponential_(2.0).numpy()
    assert abs(e.mean() - 0.5) < 0.01 and e.min() >= 0
    counts = np.bincount(zoo.randint(0, 10, (n,)).numpy(), minlength=10)
    assert counts.min() > 3600 and counts.max() < 4400
    m = zoo.multinomial(zoo.tensor([0.0, 1.0, 3.0]), n, replacement=True).numpy()
    assert (m != 0).all() and abs((m == 2).mean() - 0.75) < 0.01
    assert sorted(zoo.multinomial(zoo.ones(5), 5).tolist()) == [0, 1, 2, 3, 4]


def test_generator_state_goes_on_where_it_was():
    g = zoo.Generator().manual_seed(9)
    zoo.rand(3, generator=g)
    state = g.get_state()
    want = zoo.rand(5, generator=g)
    assert (zoo.rand(5, generator=zoo.Generator()) != want).any()
    h = zoo.Generator()
    h.set_state(state)
    assert (zoo.rand(5, generator=h) == want).all()


def test_dropout_keeps_the_mean_and_repeats_its_mask():
    zoo.manual_seed(2)
    x = zoo.ones(20_000, requires_grad=True)
    y = dropout(x, 0.25)
    assert abs(float(y.mean()) - 1) < 0.02 and set(np.unique(y.detach().numpy())) == {0.0, np.float32(1 / 0.75)}
    y.sum().backward()
    assert (x.grad == y.detach()).all()
    with pytest.raises(ValueError, match="between 0 and 1"):
        dropout(x, 1.5)
