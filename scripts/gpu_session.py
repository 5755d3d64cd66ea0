"""The 30 minutes of a lent GPU as three commands: correctness, tile configs, benchmarks. docs/gpu-session.md has them.

    ZOO_INTERPRET=1 python scripts/gpu_session.py prepare      # here: .gpu/ is what the commands carry
    python scripts/gpu_session.py build check bench tune       # here, with the Triton of there: kernels into .gpu/
    python scripts/gpu_session.py check --out DIR              # there, where nothing is installed and nothing is kept:
    python scripts/gpu_session.py bench --out DIR
    python scripts/gpu_session.py tune --out DIR
    python scripts/gpu_session.py take DIR                     # here: tables and results into the tree, to be committed

A session is a list of steps, the most valuable first, each in a process group of its own with a limit, within --budget
seconds in all: one that hangs or dies costs only itself, and one for which no time is left is named. After each step,
and every 20 seconds, DIR has SESSION.json, the steps' verdicts, and SESSION.tar.gz, all that they wrote. `--only` takes
up what was left out. Without a GPU there are two rehearsals: with ZOO_INTERPRET=1 the steps run on the interpreter in
tiny shapes; with --stub they run as on the GPU, real sizes and all, on a driver that executes nothing
(tests/libcuda_stub.c): every value is wrong then, and every time.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from gpu_check import INTERPRETING, ROOT, SECTIONS, STUB, environment, installed, verdict_of
from gpu_kernels import cache_folder
from limited import limited

BENCH = ROOT / "scripts" / "bench"
CARRIED = ROOT / ".gpu"                  # git ignores it
COMMIT = CARRIED / "commit"
KERNELS = CARRIED / "kernels.tar.xz"     # what `build` compiled
BUILT = ROOT / ".gpu-build"              # where it compiles; git ignores it too
LAUNCHES = CARRIED / "launches.jsonl"
GROUPS = {"resnet50": ("gemm", "conv"), "sequences": ("attention", "recurrent"), "others": ("gemm", "conv")}
# Of the tuner's cases, what matters most first: the launches of their candidates.
CANDIDATES = {(kind, group): CARRIED / f"candidates-{kind}-{group}.jsonl"
              for kind in ("half", "tf32") for group in GROUPS}
MOST = 12                                # candidates of a case: some 200 kernels to compile for each group of products
RESERVE = 15                             # seconds of the budget for the end: the archive, the verdicts
COPIED = "65536"                         # bytes that the stub really copies of an array
PERIOD = 20                              # seconds after which what there is so far is kept again
MINIMUM = 15                             # seconds below which no step is begun
SLOWER = 5 if INTERPRETING else 1        # the interpreter's limits
NEEDED = ("numpy", "ml_dtypes", "safetensors", "huggingface_hub", "filelock", "tqdm", "Pillow", "triton",
          "cuda-bindings", "pytest", "pytest-xdist", "pytest-timeout", "hypothesis", "mpmath")


class Step(NamedTuple):
    """args: of Python, with {out} for the session's folder, {limit} for the step's seconds. limit: at most."""

    name: str
    limit: float
    args: list[str]


def checked(part: str, limit: float) -> Step:
    """A part of gpu_check.py, which ends by itself a little before the step's limit."""
    return Step(part, limit, ["scripts/gpu_check.py", "--only", part, "--limit", "{limit}", "--out", "{out}"])


def tuned(kind: str, group: str, limit: float) -> Step:
    """Configs of a kind for a group of cases, 6 seconds each at most. The table grows from case to case."""
    few = ["--most", "2", "--repeats", "2", "--tiny"] if INTERPRETING else ["--most", str(MOST)]
    return Step(f"{kind}-{group}", limit, ["-m", "zoo.ops.tune", *GROUPS[group], "--kinds", kind, "--of", group,
                                           "--seconds", "6", *few, *["--unchecked"] * STUB, "--out",
                                           "{out}/table.json", "--begun", "{out}/begun.txt"])


def compiled(name: str, launches: Path, limit: float) -> Step:
    """Launches into Triton's cache, side by side: later steps then time kernels, not compilers."""
    if INTERPRETING:                     # no libcuda to link launchers with
        return Step(name, limit, ["scripts/compile_kernels.py", "--arch", "90", "--most", "1", str(launches)])
    return Step(name, limit, ["scripts/gpu_kernels.py", "compile", str(launches)])


MACHINE = Step("machine", 60, ["scripts/gpu_session.py", "machine", "--out", "{out}"])
TESTED = {"graphs": 60, "kernels": 120, "ops": 150, "suite": 90}
BENCHED = {"training": 200, "inference": 160, "gemm": 60, "recurrent": 40, "conv": 120, "layers": 60, "optimizers": 30}
SESSIONS = {
    "check": [MACHINE, *(checked(name, limit) for name, limit in (*TESTED.items(), ("digits", 100)))],
    "tune": [MACHINE, *(step for (kind, group), launches in CANDIDATES.items()
                        for step in (compiled(f"candidates-{kind}-{group}", launches, 100), tuned(kind, group, 180)))],
    "bench": [MACHINE, compiled("kernels-of-bench", LAUNCHES, 90),
              *(checked(f"bench-{name}", limit) for name, limit in BENCHED.items())],
}
assert set(BENCHED) == set(SECTIONS)


def prepare() -> int:
    """Writes what a machine without git needs: the commit, and the launches of the benchmark for its compiler."""
    if not INTERPRETING:
        print("gpu_session: prepare records launches in the interpreter: ZOO_INTERPRET=1", file=sys.stderr)
        return 2
    CARRIED.mkdir(exist_ok=True)
    git = ["git", "-C", str(ROOT)]
    changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True).stdout.strip()
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    COMMIT.write_text(head + " with changes" * bool(changed))
    recorders = {
        LAUNCHES: [[BENCH / "gpu_section.py", "--library", "zoo", "--section", section, "--out", LAUNCHES, "--record"]
                   for section in SECTIONS],
        **{path: [["-m", "zoo.ops.tune", *GROUPS[group], "--kinds", kind, "--of", group, "--most", str(MOST),
                   "--record", path]] for (kind, group), path in CANDIDATES.items()},
    }
    for path, commands in recorders.items():
        path.unlink(missing_ok=True)
        for command in commands:
            subprocess.run([sys.executable, *command], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        path.write_text("".join(f"{line}\n" for line in sorted(set(path.read_text().splitlines()))))
        print(f"{path}: {len(path.read_text().splitlines())} launches")
    print(f"{COMMIT}: {COMMIT.read_text()}")
    return 0


LISTS = {"check": [], "bench": [LAUNCHES], "tune": list(CANDIDATES.values())}
# The check's kernels are those that its own commands launch on the stub: the training up to the replay of its graph,
# and the tests, which say what is wrong beside values (scripts/blind.py).
CHECKED = [*(["-m", "zoo.train", "--device", "cuda", "--graph", graph, "--epochs", "1", "--limit", "1024"]
             for graph in ("on", "off")),
           *(["scripts/gpu_check.py", "--only", name, "--limit", "3600"] for name in TESTED)]


def build(names: list[str]) -> int:
    """Compiles what these sessions launch and packs it; what an earlier call compiled is not compiled again."""
    sys.path.insert(0, str(BENCH))
    from launch import stub_environment  # pyright: ignore[reportMissingImports]

    paths = [str(path) for name in names for path in LISTS[name]]
    with tempfile.TemporaryDirectory() as folder:
        env = stub_environment(folder) | {"TRITON_CACHE_DIR": str(BUILT), "TRITON_STORE_BINARY_ONLY": "1",
                                          "STUB_COPY": COPIED}
        commands = [["scripts/gpu_kernels.py", "compile", *paths]] if paths else []
        commands += [[*command, "--out", f"{folder}/runs"] for command in CHECKED if "check" in names]
        commands.append(["scripts/gpu_kernels.py", "pack", str(KERNELS)])
        done = [subprocess.run([sys.executable, *command], cwd=ROOT, env=env).returncode for command in commands]
    print(f"{KERNELS}: {KERNELS.stat().st_size / 1e6:.1f} MB")
    return int(any(done))


def rehearse(command: list[str]) -> int:
    """This script with these arguments on the stub."""
    sys.path.insert(0, str(BENCH))
    from launch import stub_environment  # pyright: ignore[reportMissingImports]

    with tempfile.TemporaryDirectory() as folder:
        env = stub_environment(folder) | {"STUB_COPY": COPIED}
        return subprocess.run([sys.executable, __file__, *command], env=env).returncode


def machine(out: Path) -> int:
    """Writes which GPU and which versions there are; 1 if a package is missing, which the command has to carry."""
    sys.path.insert(0, str(ROOT))
    import zoo

    versions = {name: installed(name) for name in NEEDED}
    missing = [name for name, version in versions.items() if version is None]
    gpu = zoo.cuda.get_device_properties()
    found = {**environment(), "packages": versions, "cores": os.cpu_count(), "devices": zoo.cuda.device_count(),
             "properties": dataclasses.asdict(gpu), "libc": platform.libc_ver(), "compiler": shutil.which("gcc")}
    (out / "machine.json").write_text(json.dumps(found, indent=1))
    if smi := shutil.which("nvidia-smi"):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run([smi], timeout=20)
    print("\n".join(f"{name} {value}" for name, value in {**versions, **found["properties"]}.items()))
    print(f"missing: {', '.join(missing)}" if missing else f"{found['gpu']}, commit {found['commit'][:9]}", flush=True)
    return int(bool(missing))


def session(name: str, only: list[str], budget: float, out: Path) -> int:
    """Runs the steps of a session; 1 if one of them failed or was left out."""
    end, results = time.monotonic() + budget - RESERVE, []
    out.mkdir(parents=True, exist_ok=True)
    if COMMIT.exists():
        os.environ["ZOO_COMMIT"] = COMMIT.read_text()
    if KERNELS.exists() and not INTERPRETING:
        subprocess.run([sys.executable, "scripts/gpu_kernels.py", "unpack", str(KERNELS)], cwd=ROOT)
    with tempfile.TemporaryDirectory() as made, keeping(name, Path(made), out) as keep:
        folder = Path(made)
        for step in SESSIONS[name]:
            if only and step.name not in only and step is not MACHINE:       # what came back says where it was measured
                continue
            left = min(SLOWER * step.limit, end - time.monotonic())
            results.append(left_out(step) if left < MINIMUM else ran(step, left, folder))
            (folder / f"{name}.json").write_text(json.dumps(results, indent=1))
            keep()
            print("{name:24s} {word:8s} {seconds:6.1f} s  {compiled:4d} compiled  {verdict}".format(**results[-1]),
                  flush=True)
    return int(any(r["status"] for r in results))


def left_out(step: Step) -> dict:
    return {"name": step.name, "status": 125, "seconds": 0.0, "compiled": 0, "word": "LEFT OUT",
            "verdict": f"--only {step.name}"}


def compiled_since(began: float) -> int:
    """How many kernels this machine has compiled since that time: what was carried has no source beside it."""
    if not (cache := cache_folder()).exists():
        return 0
    new = [entry.path for entry in os.scandir(cache) if entry.stat().st_mtime >= began]
    return sum(name.endswith(".ttir") for folder in new for name in os.listdir(folder))


def ran(step: Step, seconds: float, folder: Path) -> dict:
    """One step, its verdict, and the end of what it printed where it failed."""
    began, log = time.time(), folder / f"{step.name}.step.log"
    args = [sys.executable, *(a.format(out=folder, limit=seconds - 5) for a in step.args)]
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    status, took = limited(args, seconds, log, ROOT, PYTHONPATH=paths, PYTHONUNBUFFERED="1")
    output = log.read_text(errors="replace")
    if status:
        print(output[-2000:])
    lines = [line for line in output.splitlines() if line.strip()]
    word = {0: "ok", 124: "TOO LONG"}.get(status, "FAILED")
    return {"name": step.name, "status": status, "seconds": took, "word": word, "compiled": compiled_since(began),
            "verdict": verdict_of(output) or "".join(lines[-1:])[:160]}


@contextlib.contextmanager
def keeping(name: str, folder: Path, out: Path) -> Iterator[Callable[[], None]]:
    """Gives what keeps all there is so far, and does so by itself too while a step runs: its machine may be gone."""
    over, one = threading.Event(), threading.Lock()

    def keep():
        with one:
            if (verdicts := folder / f"{name}.json").exists():
                shutil.copy(verdicts, out)
            archive = out / f"{name}.tar.gz"
            with contextlib.suppress(OSError, tarfile.TarError):        # a step replaced a file meanwhile
                with tarfile.open(f"{archive}.new", "w:gz") as tar:
                    tar.add(folder, arcname=name)
                os.replace(f"{archive}.new", archive)    # under names that replace the last ones at once

    def again():
        while not over.wait(PERIOD):
            keep()
    thread = threading.Thread(target=again, daemon=True)
    thread.start()
    try:
        yield keep
    finally:
        over.set()
        thread.join()


def take(folder: Path, root: Path = ROOT) -> int:
    """Unpacks what came back, puts the table and the results in their places, and says which files are new.

    Args:
        folder: with the archives. root: of the tree that gets them.
    """
    for archive in sorted(folder.glob("*.tar.gz")):
        with tempfile.TemporaryDirectory() as made:
            with tarfile.open(archive) as tar:
                tar.extractall(made, filter="data")
            inside = Path(made) / archive.name.removesuffix(".tar.gz")
            if (gpu := json.loads((inside / "machine.json").read_text())["gpu"]).startswith(("interpreter", "STUB")):
                print(f"{archive}: times of the {gpu} mean nothing, nothing is taken", file=sys.stderr)
                return 2
            for place, text in texts(inside, root):
                if not (place.exists() and place.read_text() == text):
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_text(text)
                    print(f"{archive.name}: {place.relative_to(root)}")
    return 0


def texts(inside: Path, root: Path) -> list[tuple[Path, str]]:
    """(place in the tree, what it gets from this session)."""
    results = root / "scripts" / "bench" / "results" / "gpu"
    verdicts = results / f"{inside.name}.json"
    steps = {step["name"]: step for path in (verdicts, inside / verdicts.name) if path.exists()
             for step in json.loads(path.read_text())}               # what --only ran later replaces its own
    found = [(results / f"{inside.name}-machine.json", inside / "machine.json")]
    if (table := inside / "table.json").exists():
        family = json.loads(table.read_text())["family"]
        found.append((root / "ops" / "gpu_configs" / f"{family}.json", table))
    made = [(verdicts, json.dumps(list(steps.values()), indent=1)),
            *((place, source.read_text()) for place, source in found)]
    if (measured := inside / "gpu.json").exists():
        sys.path.insert(0, str(BENCH))
        from gpu_roofline import roofline  # pyright: ignore[reportMissingImports]

        new, old = json.loads(measured.read_text()), results / "gpu.json"
        sections = {row["section"] for row in new["rows"]}
        kept = [row for row in json.loads(old.read_text())["rows"] if row["section"] not in sections
                ] if old.exists() else []
        new["rows"] = kept + new["rows"]
        made += [(old, json.dumps(new, indent=1)), (results / "roofline.svg", roofline(new["rows"], new["gpu"]))]
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare", help="here, before")
    commands.add_parser("build", help="here, before").add_argument("names", nargs="+", choices=list(LISTS))
    commands.add_parser("machine", help="a step").add_argument("--out", type=Path, required=True)
    commands.add_parser("take", help="here, after").add_argument("folder", type=Path)
    for name, steps in SESSIONS.items():
        command = commands.add_parser(name, help=", ".join(step.name for step in steps))
        command.add_argument("--only", nargs="+", choices=[step.name for step in steps], default=[])
        command.add_argument("--budget", type=float, default=480, help="seconds in all")
        command.add_argument("--out", type=Path, required=True, help="two files come back in it")
        command.add_argument("--stub", action="store_true", help="on the driver stub: a rehearsal")
    args = parser.parse_args()
    if args.command == "prepare":
        return prepare()
    if args.command == "build":
        return build(args.names)
    if args.command == "machine":
        return machine(args.out)
    if args.command == "take":
        return take(args.folder)
    if args.stub:
        return rehearse([word for word in sys.argv[1:] if word != "--stub"])
    return session(args.command, args.only, args.budget, args.out)


if __name__ == "__main__":
    sys.exit(main())
