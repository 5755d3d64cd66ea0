"""Compiling for GPUs that are not here: the recorder, scripts/compile_kernels.py, and both beside the interpreter."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from zoo.ops import cuda
from zoo.ops.cuda import record

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

ROOT = Path(__file__).parent.parent
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
interpret = pytest.mark.interpret


@triton.jit
def square(x):
    return x * x


@triton.jit
def map_kernel(x, out, n, BLOCK: tl.constexpr, F: tl.constexpr):
    """x, out: (n,). Grid: (ceil(n / BLOCK),)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, F(tl.load(x + i, i < n)), i < n)


def squares(a):
    x, out = cuda.from_numpy(a), cuda.empty(a.shape, a.dtype)
    cuda.launch(map_kernel, (1,), x, out, a.size, BLOCK=128, F=square)
    return cuda.to_numpy(out)


@interpret
def test_compiles_between_interpretations(rng):
    from zoo.ops.cuda import interpreter, launcher, triton_driver

    a = rng.standard_normal(100).astype("f")
    assert np.array_equal(squares(a), a * a)
    driver = triton.runtime.driver
    before = driver._active
    try:
        with interpreter.compiling():
            triton_driver.prepare()
            driver.set_active(triton_driver.CompileOnlyDriver(triton_driver.GPUTarget("cuda", 90, 32), index=7))
            pointer = record.sample("*float32/16")
            kernel = launcher.Kernel(map_kernel, BLOCK=128, F=square)
            built = kernel.warm(dict(x=pointer, out=pointer, n=100))
            assert ".target sm_90" in built.asm["ptx"]
    finally:
        driver._active = before
    assert np.array_equal(squares(a), a * a)


@interpret
def test_what_is_recorded_compiles(tmp_path):
    """The recorder's lines, through scripts/compile_kernels.py, for a GPU that is not here; and a failure shows."""
    before = record.path, record.modules
    lines = tmp_path / "launches.jsonl"
    record.start(lines, prefix="kernels_of_test")
    (tmp_path / "kernels_of_test.py").write_text(KERNELS)
    sys.path.insert(0, str(tmp_path))
    try:
        import kernels_of_test

        x = cuda.from_numpy(np.zeros((32, 32), BFLOAT16))
        for _ in range(2):
            twice = kernels_of_test.twice
            cuda.launch(kernels_of_test.dot, (1,), x, x, x, (32, 1), None, 0.5, N=32, F=twice, T=tl.float32)
        odd = x.view((31,), (1,), 1)
        cuda.launch(kernels_of_test.dot, (1,), x, x, odd, (17, 1), 3, 0.5, N=16, F=None, T=tl.float32)
    finally:
        record.start(*before)
        sys.path.remove(str(tmp_path))
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(rows) == 2, "equal launches are one line"
    assert rows[0]["args"] == ["*bfloat16/16", "*bfloat16/16", "*bfloat16/16", ["i32/16", "1"], None, "float"]
    assert rows[1]["args"] == ["*bfloat16/16", "*bfloat16/16", "*bfloat16", ["i32", "1"], "i32", "float"]
    done = compile_kernels(tmp_path, lines, "--arch", "90", "--report", tmp_path / "report.json", "--workers", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert [r["arch"] for r in report] == [90, 90] and all(0 < r["registers"] <= 255 for r in report)
    assert any("mma" in r["mma"] for r in report) and "kernels_of_test:dot" in done.stdout
    rows[0]["args"][0] = "*float32/16"  # a dot of float32 and bfloat16
    lines.write_text(json.dumps(rows[0]))
    done = compile_kernels(tmp_path, lines, "--arch", "90", "--workers", "1")
    assert done.returncode == 1 and "FAILED kernels_of_test:dot" in done.stdout


KERNELS = '''
import triton
import triton.language as tl

@triton.jit
def twice(x):
    return x + x

@triton.jit
def dot(a, b, out, strides, shift, scale, N: tl.constexpr, F: tl.constexpr, T: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * strides[0] + i[None, :] * strides[1]
    c = tl.dot(tl.load(a + at), tl.load(b + at)).to(T) * scale
    if F is not None:
        c = F(c)
    if shift is None:
        tl.store(out + at, c.to(tl.bfloat16))
    else:
        tl.store(out + at + shift, c.to(tl.bfloat16))
'''


def compile_kernels(folder, *args):
    env = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}"}
    command = [sys.executable, ROOT / "scripts/compile_kernels.py", *map(str, args)]
    return subprocess.run(command, env=env, capture_output=True, text=True)


@interpret
def test_a_dry_run_records_and_computes_nothing(tmp_path):
    lines = tmp_path / "launches.jsonl"
    with record.dry_run(lines):
        x = cuda.empty((1 << 20, 1 << 16), np.float32)  # 256 GB
        y = x * 2.0 + x
        cuda.fill_bytes(y)
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [r["constexprs"]["F"][1] for r in rows] == ["mul", "add"]
    assert cuda.to_numpy(cuda.from_numpy(np.ones(2, "f")) * 2.0).tolist() == [2, 2], "afterwards all is as before"


def test_real_sizes_are_recorded(tmp_path):
    """The whole script, without memory for its arrays; CI compiles what it writes."""
    lines = tmp_path / "launches.jsonl"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, ROOT / "scripts/record_real_sizes.py", lines], env=env, check=True)
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    kernels = {r["kernel"].partition(":")[2] for r in rows}
    assert {"gemm", "fprop", "dgrad", "wgrad", "flat", "tile", "normalize_channels", "step_kernel"} <= kernels
    tiles = [r["constexprs"]["BM"] * r["constexprs"]["BN"] for r in rows if r["kernel"].endswith(":gemm_tma")]
    assert max(tiles) >= 128 * 256, "the tile that only large products take"


@interpret
@pytest.mark.parametrize("family", ["sm86", "sm100"])
def test_every_row_of_the_table_is_taken(family):
    """By what scripts/compile_configs.py compiles, and what it finds poor; CI runs it for sm_90."""
    script = script_of("compile_configs")
    from zoo.ops import gpu_configs

    found, missing = script.launches(family, ["products", "convolutions"], list(script.config_cases.KINDS))
    assert not missing
    names = {launch.row["kernel"].partition(":")[2] for launch in found}
    assert {"gemm", "fprop", "fprop_rows", "dgrad", "wgrad", "depthwise", "lay"} <= names
    product = next(launch for launch in found if launch.per_sm > 1 and launch.row["args"][0].startswith("*bfloat16"))
    good = dict(stack=0, shared=0, programs=product.per_sm, mma=script.MMA[family])
    it = gpu_configs.FAMILIES[family]
    assert script.faults(product, good, it) == []
    for wrong in (dict(stack=8), dict(shared=it.shared + 1), dict(programs=product.per_sm - 1), dict(mma="")):
        assert len(script.faults(product, good | wrong, it)) == 1


def script_of(name: str):
    """A script as a module, which finds its neighbours as when it is run."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "scripts"))
