"""Run by .ci/run where zoo is installed from a wheel, far from the checkout: is every package and data file there?"""
import importlib.util
import sys
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent


def main():
    import zoo
    if CHECKOUT in Path(zoo.__file__).resolve().parents:
        sys.exit(f"wheel_check: zoo comes from the checkout: {zoo.__file__}")
    tools = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]
    lost = []
    for package in tools["packages"]:
        folder = package.replace(".", "/")
        top, _, rest = package.removeprefix("zoo").lstrip(".").partition(".")
        source = CHECKOUT / tools["package-dir"].get(f"zoo.{top}", f"zoo/{top}") / rest.replace(".", "/")
        installed = Path(zoo.__file__).parent.parent / folder
        wanted = [p for p in source.iterdir() if p.suffix in (".py", ".pyi", ".npz", ".typed")]
        lost += [f"{folder}/{p.name}" for p in wanted if not (installed / p.name).is_file()]
        if importlib.util.find_spec(package) is None:
            lost.append(package)
    if lost:
        sys.exit(f"wheel_check: the wheel lacks {lost}")
    print(f"wheel_check: {len(tools['packages'])} packages of {Path(zoo.__file__).parent}")


if __name__ == "__main__":
    main()
