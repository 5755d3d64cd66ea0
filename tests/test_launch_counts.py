"""How many kernels a step launches and how much memory it takes, counted without a GPU (scripts/bench/gpu_bytes.py)."""
import sys
from collections import Counter

import pytest

import zoo
from tests.house import ROOT
from zoo.models.resnet import Bottleneck
from zoo.ops.cuda import record

pytestmark = pytest.mark.interpret


@pytest.fixture
def count(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "scripts/bench")])
    import gpu_bytes  # pyright: ignore[reportMissingImports]

    return gpu_bytes


def test_a_bottleneck_in_training_launches_what_it_has_to(count):
    """A batch norm: two passes over memory and two small kernels forward, two passes and one small kernel backward."""
    with record.dry_run("/dev/null"), zoo.nn.init.skip_init():
        half = {"device": "cuda", "dtype": zoo.bfloat16}
        block = Bottleneck(256, 64).to(**half, memory_format=zoo.channels_last)
        x = zoo.empty(256, 256, 56, 56, **half).to(memory_format=zoo.channels_last).requires_grad_()
        ys = []
        forward = Counter(e.kernel for e in count.launches_of(lambda: ys.append(block(x))))
        dy = zoo.empty(ys[0].shape, **half).to(memory_format=zoo.channels_last)
        backward = Counter(e.kernel for e in count.launches_of(lambda: ys.pop().backward(dy)))
    norms = {"moments_of_rows": 3, "merge_rows": 3, "move_statistics": 3, "normalize_rows": 3}
    assert {k: n for k, n in forward.items() if k in norms} == norms
    assert forward.total() == 12 + 3                                  # a kernel for each convolution, and nothing else
    norms = {"gradient_of_rows": 3, "coefficients_of_parts": 3, "combine_rows": 3}
    assert {k: n for k, n in backward.items() if k in norms} == norms
    # of pointwise kernels: the sum of both gradients of x, and casts to the parameters' dtype; nothing is laid out anew
    assert backward["flat add"] == 1 and set(backward) - set(norms) <= {
        "flat add", "cast_kernel", "gemm", "gemm_tma", "gemm_stream", "dgrad", "wgrad", "add_parts"}


def test_a_step_keeps_no_more_than_torch(count):
    """ResNet-50 at the batch of the benchmark: launches, bytes and the peak of memory do not grow."""
    report = count.report_of("resnet50", 256, 224)
    assert report["launches"] <= 610 and report["bytes"] <= 93.7e9
    assert report["memory"]["peak"] <= report["memory"]["kept by torch after forward"]
    assert report["bytes"] >= sum(report["least bytes"].values())
