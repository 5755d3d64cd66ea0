"""The launch cache tells apart whatever Triton compiles different kernels for: asked of Triton itself."""
import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton")
INTS = sorted({sign * (2**bits + more) for bits in (0, 1, 3, 4, 5, 30, 31, 32, 62) for more in (-16, -1, 0, 1, 16)
               for sign in (-1, 1)} | {0, 2**63 - 1, 2**63, 2**64 - 16, 2**64 - 1, -(2**63)})
NUMBERS = [*INTS, 0.0, -0.0, 1.0, 16.0, 2.0**31, float("inf"), float("nan"), True, False, None]
DTYPES = [*"bool int8 uint8 int16 int32 int64 uint64 float16 float32 float64".split(), ml_dtypes.bfloat16]


@pytest.fixture(scope="module")
def specialization():
    """(value, is it specialised) -> what Triton's compiled kernel depends on."""
    from triton._C.libtriton import native_specialize_impl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend

    from zoo.ops.cuda.triton_driver import prepare

    prepare()
    backend = type(make_backend(GPUTarget("cuda", 90, 32)))

    def of(value, specialised):
        return repr(native_specialize_impl(backend, value, False, specialised, specialised))
    return of


def key(form, value):
    """What the launch that is written out looks up for an argument."""
    from zoo.ops.cuda import launcher

    v = getattr(value, "pointer", value)
    return type(value), eval(form.key.format(a="a", v="v"), vars(launcher) | {"a": value, "v": v}) if form.key else None


def assert_tells_apart(form_of, values, specialization, specialised=True):
    seen = {}
    for value in values:
        found = specialization(value, specialised)
        before, kind = seen.setdefault(key(form_of(value), value), (value, found))
        assert kind == found, f"{before!r} and {value!r} share a launch, but Triton makes them {kind} and {found}"


def test_numbers(specialization):
    from zoo.ops.cuda.launcher import FORMS

    assert_tells_apart(lambda v: FORMS[type(v)], NUMBERS, specialization)


def test_numbers_that_are_not_specialised(specialization):
    from zoo.ops.cuda.launcher import ANY_INT, FORMS

    assert_tells_apart(lambda v: ANY_INT if type(v) is int else FORMS[type(v)], NUMBERS, specialization, False)


def test_arrays(specialization):
    from zoo.ops.cuda import DeviceArray
    from zoo.ops.cuda.launcher import FORMS

    arrays = [DeviceArray(4096 + more, (3,), (1,), np.dtype(dtype), None)
              for dtype in DTYPES for more in (0, 1, 2, 4, 8, 12, 16, 24, 256)]
    assert_tells_apart(lambda v: FORMS[DeviceArray], arrays, specialization)


def test_tuples(specialization):
    """Of numbers and arrays, spelled out as one argument."""
    from zoo.ops.cuda import DeviceArray
    from zoo.ops.cuda.launcher import spelled

    arrays = [DeviceArray(4096 + more, (3,), (1,), np.dtype(name), None)
              for name in ("float32", "float16") for more in (0, 4)]
    seen = {}
    for value in (*NUMBERS, *arrays):
        for pair in ((value, 7), (7, value), (16, (value,))):
            found = specialization(pair, True)
            assert seen.setdefault(spelled(pair), found) == found, pair
