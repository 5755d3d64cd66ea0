"""What a compiled kernel takes is read from its binary; one that spills, or was edited, is compiled again."""

import importlib
import linecache
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

if os.environ.get("ZOO_INTERPRET"):
    pytest.skip("compiles", allow_module_level=True)
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

from zoo.ops.cuda import launcher, record, triton_driver  # noqa: E402
from zoo.ops.cuda.cubin import Usage, limits, usage  # noqa: E402


@triton.jit
def rows_times_columns(x, out, N: tl.constexpr):
    """x, out (N, N) float32. Grid (1,). Products of all rows in one program: many numbers are needed at once."""
    at = tl.arange(0, N)
    a = tl.load(x + at[:, None] * N + at)
    tl.store(out + at[:, None] * N + at, tl.dot(a, tl.dot(a, a)) + a)


@pytest.fixture
def compile_for():
    """compile_for(arch) makes Triton compile for it; afterwards it is as it was."""
    driver = triton.runtime.driver
    before = driver._active
    triton_driver.prepare()

    def choose(arch):
        driver.set_active(triton_driver.CompileOnlyDriver(triton_driver.GPUTarget("cuda", arch, 32), index=arch))

    yield choose
    driver._active = before


def arguments():
    return dict(x=record.sample("*float32/16"), out=record.sample("*float32/16"))


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_the_usage_is_what_cuobjdump_reads(compile_for, tmp_path, arch):
    compile_for(arch)
    cubin = launcher.Kernel(rows_times_columns, num_warps=1, N=32).built(arguments(), 40).asm["cubin"]
    (tmp_path / "a.cubin").write_bytes(cubin)
    text = subprocess.run([triton.knobs.nvidia.cuobjdump.path, "-res-usage", str(tmp_path / "a.cubin")],
                          capture_output=True, text=True, check=True).stdout
    found = usage(cubin)
    assert f"REG:{found.registers} STACK:{found.stack} SHARED:{found.shared} " in text
    assert found.registers == 40 and found.stack > 0


def test_the_usage_of_what_is_no_binary():
    with pytest.raises(ValueError, match="usage: wants a cubin, an ELF file with 64 bits, got b'//'"):
        usage(b"//")


def test_which_limits_are_tried():
    assert limits(96, 4, None) == [96, 128, 168, 255]
    assert limits(168, 4, 168) == [None, 255]
    assert limits(80, 16, 80) == [None, 128]                # 512 threads have 128 registers each
    assert limits(255, 8, None) == [255] and limits(255, 8, 255) == [None]
    assert limits(27, 4, None) == []                        # an array of the kernel, not what the assembler spilled


def test_a_kernel_that_spills_is_compiled_with_another_limit(compile_for, monkeypatch):
    compile_for(80)
    tried = []
    built = launcher.Kernel.built
    monkeypatch.setattr(launcher.Kernel, "built", lambda *args: tried.append(args[2]) or built(*args))
    kernel = launcher.Kernel(rows_times_columns, maxnreg=40, num_warps=1, N=32)
    assert usage(kernel.warm(arguments()).asm["cubin"]).stack == 0 and tried == [40, None]


def test_what_spills_least_is_taken(monkeypatch):
    """Of limits that all spill, and one that the assembler refuses."""
    stacks, tried = {40: 64, None: 32, 128: 8, 255: 16}, []

    def built(kernel, arguments, limit):
        tried.append(limit)
        if limit == 168:
            raise triton.runtime.errors.PTXASError("refused")
        return SimpleNamespace(asm={"cubin": limit})

    monkeypatch.setattr(launcher.Kernel, "built", built)
    monkeypatch.setattr(launcher, "usage", lambda limit: Usage(40, stacks[limit], 0))
    kernel = launcher.Kernel(rows_times_columns, maxnreg=40, num_warps=1, N=32)
    assert kernel.warm(arguments()).asm["cubin"] == 128 and tried == [40, None, 128, 168, 255]


STAGED = '''
import triton
import triton.language as tl


@triton.jit
def stage(x):
    return x {}


@triton.jit
def kernel(x, out, STAGES: tl.constexpr):
    """x, out (1,) float32. Grid (1,)."""
    tl.store(out, STAGES[0](tl.load(x)))
'''


def test_an_edited_stage_is_not_served_from_the_disk(compile_for, tmp_path, monkeypatch):
    """Triton's key of a tuple of functions is made of their names: the same file before and after an edit."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    built = []
    for change in "+ 1.0", "* 1234.0", "+ 1.0":
        (tmp_path / "staged_kernel.py").write_text(STAGED.format(change))
        sys.modules.pop("staged_kernel", None)
        linecache.clearcache()
        importlib.invalidate_caches()
        module = importlib.import_module("staged_kernel")
        compile_for(80)
        built.append(launcher.Kernel(module.kernel, STAGES=(module.stage,)).warm(arguments()))
    sys.modules.pop("staged_kernel", None)
    first, second, third = (a.asm["ptx"].partition(".debug")[0] for a in built)
    assert first != second and first == third
    assert len(list((tmp_path / "cache").glob("*/*.cubin"))) == 2
