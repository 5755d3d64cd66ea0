"""Two ops of your own: a formula as a row, and a function of whole rows with its own Triton kernel.

    python scripts/custom_op.py                                      # NumPy
    ZOO_INTERPRET=1 python scripts/custom_op.py --device cuda        # the kernels, in Triton's interpreter
    python scripts/custom_op.py --device cuda                        # the kernels, on a GPU

Nothing in the library knows of them, and yet they work like its own: on arrays and tensors, on both devices, with
derivatives of any order. The script compares both with the same thing composed of the library's ops.
"""

import argparse

import numpy as np
import triton
import triton.language as tl

import zoo
from zoo.ops import cuda
from zoo.ops.binding import elementwise
from zoo.ops.errors import ShapeError
from zoo.ops.op import Spec, need_float, structured
from zoo.ops.pointwise_gpu import contiguous_copy


@elementwise
class snake:
    """x + sin(a x)^2 / a: a periodic activation (Ziyin et al. 2020). The kernels are made from these two formulas."""
    kind = "float"
    def f(x, a=1.0): return x + sin(a * x) * sin(a * x) / a  # noqa: F821 (bound to NumPy's, Triton's, the ops' sin)
    def dx(dy, x, a): return dy * (1 + sin(2 * a * x))  # noqa: F821


@triton.jit
def unit_kernel(x, y, N, eps, BN: tl.constexpr):
    """x, y: (rows, N), BN >= N: a program reads a row once and writes it once. grid (rows,)."""
    n = tl.arange(0, BN)
    at = tl.program_id(0).to(tl.int64) * N + n
    v = tl.load(x + at, mask=n < N, other=0)
    wide = v.to(tl.float32) if v.dtype.primitive_bitwidth < 32 else v
    norm = tl.sqrt(tl.sum(wide * wide, 0) + eps)
    tl.store(y + at, (wide / norm).to(y.dtype.element_ty), mask=n < N)


@structured
class unit_rows:
    """x / sqrt(sum(x^2) + eps) along the last dimension."""

    def check(x, eps=1e-12):
        need_float("unit_rows", x)
        if not x.shape:
            raise ShapeError("unit_rows: wants at least one dimension, got a scalar")
        return Spec(x.shape, x.dtype)

    def forward(x, eps=1e-12):
        unit_rows.check(x, eps)
        wide = x.astype(np.promote_types(x.dtype, np.float32), copy=False)
        return (wide / np.sqrt((wide * wide).sum(-1, keepdims=True) + eps)).astype(x.dtype, copy=False)

    def gpu(x, eps):
        spec = unit_rows.check(x, eps)
        columns = spec.shape[-1]
        x = x if x.is_contiguous else contiguous_copy(x)
        y = cuda.empty(spec.shape, spec.dtype, x.device)
        kernel = cuda.prepare(unit_kernel, BN=triton.next_power_of_2(columns))
        kernel((x.size // max(columns, 1),), x, y, columns, float(eps))
        return y

    def dx(dy, x, y, eps):
        """(dy - y sum(dy y)) / norm, written in ops: they run on both devices, and are recorded for higher orders."""
        norm = zoo.sqrt(zoo.sum(x * x, -1, True) + eps)
        return (dy - y * zoo.sum(dy * y, -1, True)) / norm


def composed_snake(x, a=1.0):
    return x + (a * x).sin().square() / a


def composed_unit_rows(x, eps=1e-12):
    return x / (x.square().sum(-1, keepdim=True) + eps).sqrt()


def check(name, op, composed, x, *rest) -> bool:
    """Values, first and second derivatives beside the composed version, and beside finite differences."""
    x = x.requires_grad_()
    weight = zoo.linspace(-1, 1, x.numel(), dtype=x.dtype, device=x.device).reshape(x.shape)
    results = []
    for function in (op, composed):
        y = function(x, *rest)
        (first,) = zoo.autograd.grad((y * weight).sum(), x, create_graph=True)
        (second,) = zoo.autograd.grad((first * first).sum(), x)
        results.append((y, first, second))
    error = max((a - b).abs().max().item() for a, b in zip(*results, strict=True))
    exact = zoo.autograd.gradcheck(op, (x, *rest)) and zoo.autograd.gradgradcheck(op, (x, *rest))
    print(f"{name:10}  on {x.device}: differs from the composed version by {error:.1e}; gradcheck {exact}")
    return exact and error < 1e-12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    zoo.manual_seed(args.seed)
    x = zoo.randn(5, 7, dtype=zoo.float64, device=args.device)
    good = [check("snake", snake, composed_snake, x.clone(), 0.5),
            check("unit_rows", unit_rows, composed_unit_rows, x.clone())]
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
