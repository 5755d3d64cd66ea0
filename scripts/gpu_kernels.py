"""Kernels and their launchers compiled side by side into Triton's cache, and that cache as one file to carry.

    python scripts/gpu_kernels.py compile launches.jsonl ... [--workers 16]
    python scripts/gpu_kernels.py pack kernels.tar.xz
    python scripts/gpu_kernels.py unpack kernels.tar.xz

A kernel's key in the cache is made of Triton itself, the source of the functions and the options, of no path and no
machine: what was compiled elsewhere with the same Triton is found (tests/test_cuda_stub.py). Only the binaries are
packed, 3 to 10 KB a kernel. Compiling wants a libcuda, if only the stub: Triton links the launchers with it.
"""
import argparse
import io
import json
import os
import sys
import tarfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from compile_kernels import built_from, rows_of

GROUP = "__grp__"                        # of Triton: the files that belong together, with their whole paths
KEPT = ".json", ".cubin", ".so"          # what a launch needs


def cache_folder() -> Path:
    """Where Triton keeps what it compiled."""
    import triton

    return Path(triton.knobs.cache.dir)


def compile_one(line: str) -> str:
    """Compiles a recorded launch for Hopper, and its launcher; what was wrong, or ""."""
    from triton.backends.nvidia.driver import CudaLauncher

    try:
        built = built_from(json.loads(line), 90)
        CudaLauncher(built.src, built.metadata)
    except Exception as e:               # a compiler's own errors derive from many classes
        return f"{json.loads(line)['kernel']}: {type(e).__name__}: {e}"
    return ""


def compile_all(paths: list[str], workers: int) -> int:
    """Compiles the launches of all files, in their order; 1 if one failed."""
    lines, began, failed = rows_of(paths), time.perf_counter(), 0
    for name in ("ZOO_INTERPRET", "ZOO_RECORD"):
        os.environ.pop(name, None)       # the workers compile
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for count, job in enumerate(as_completed([pool.submit(compile_one, line) for line in lines]), 1):
            if wrong := job.result():
                failed += 1
                print(f"FAILED {wrong[:500]}", flush=True)
            if count % 100 == 0:
                print(f"{count} of {len(lines)} in {time.perf_counter() - began:.0f} s", flush=True)
    print(f"{len(lines) - failed} of {len(lines)} compiled in {time.perf_counter() - began:.0f} s")
    return int(failed > 0)


def pack(archive: Path) -> int:
    """Writes the cache's binaries and launchers as one file; the number of files in it."""
    cache, count = cache_folder(), 0
    with tarfile.open(archive, "w:xz") as tar:
        for path in sorted(cache.glob("*/*")):
            name = str(path.relative_to(cache))
            if path.name.startswith(GROUP):
                files = json.loads(path.read_text())["child_paths"]
                text = json.dumps([file for file in files if file.endswith(KEPT)]).encode()
                info = tarfile.TarInfo(name)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text))
            elif path.suffix in KEPT:
                tar.add(path, name)
            else:
                continue
            count += 1
    return count


def unpack(archive: Path) -> int:
    """Puts what `pack` wrote into the cache here; the number of kernels."""
    cache, count = cache_folder(), 0
    with tarfile.open(archive) as tar:
        tar.extractall(cache, filter="data")
        groups = [cache / name for name in tar.getnames() if Path(name).name.startswith(GROUP)]
    for path in groups:
        files = {name: str(path.parent / name) for name in json.loads(path.read_text())}
        path.write_text(json.dumps({"child_paths": files}))
        count += 1
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["compile", "pack", "unpack"])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    if args.command == "compile":
        return compile_all(args.paths, args.workers)
    count = pack(Path(args.paths[0])) if args.command == "pack" else unpack(Path(args.paths[0]))
    print(f"{args.paths[0]}: {count} {'files' if args.command == 'pack' else 'kernels'}, {cache_folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
