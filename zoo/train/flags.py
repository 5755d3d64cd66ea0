"""From the command line and --config to a Config: flags, TOML and the config of a run that goes on."""

import argparse
import json
import tomllib
from collections.abc import Iterable
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from zoo.train.config import Config, flag
from zoo.utils.command_line import Parser, UsageError, nearest

FIELDS = {f.name: f for f in fields(Config)}
RESUMABLE = {"resume", "workers", "device", "graph", "threads", "save_minutes", "save_steps", "keep", "report"}
DESCRIPTION = (
    "Trains an image classifier. Without options: a small ResNet on 1,437 handwritten digits, tested on 360 others. "
    "With --data FOLDER: on the pictures there, a folder for each class. `python -m zoo.train text --help` is another."
)


def parse(arguments: list[str] | None = None) -> Config:
    """The Config that a command line asks for.

    Args:
        arguments: of the command line; those of this process if None.

    Raises:
        UsageError: an unknown option, or a value that does not fit.

    Example:
        >>> from zoo.train.flags import parse
        >>> parse(["--epochs", "3", "--optimizer-options", "momentum=0.8"]).optimizer_options
        {'momentum': 0.8}
    """
    given = given_to(make_parser(), arguments, (*FIELDS, "config"))
    for name, value in given.items():
        if isinstance(value, list):
            given[name] = dict(value)
    config = given.pop("config", None)
    if "resume" in given:
        return resumed(given)
    return Config(**{**(read_toml(config) if config else {}), **given})


def make_parser() -> Parser:
    """One flag for each field, in the fields' groups."""
    parser = Parser(prog="python -m zoo.train", usage="python -m zoo.train [image|text] [options]",
                    allow_abbrev=False, description=DESCRIPTION,
                    argument_default=argparse.SUPPRESS)
    parser.add_argument("--config", metavar="FILE", help="a TOML file whose keys are these options; flags come first")
    add_flags(parser, FIELDS.values())
    return parser


def add_flags(parser: Parser, options: Iterable[Field]) -> None:
    """One flag for each field of a config, in the fields' groups."""
    groups: dict[str, Any] = {}
    for f in options:
        name = f.metadata["group"]
        if name not in groups:
            groups[name] = parser.add_argument_group(name)
        groups[name].add_argument(flag(f.name), help=help_of(f), **kind_of(f))


def given_to(parser: Parser, arguments: list[str] | None, names: Iterable[str]) -> dict[str, Any]:
    """The options that are on a command line, by name.

    Raises:
        UsageError: one that is not among `names`.
    """
    known, rest = parser.parse_known_args(arguments)
    if rest:
        flags = [flag(name) for name in names]
        raise UsageError(f"no option {rest[0]!r}{nearest(rest[0].split('=')[0], flags)}; --help lists them")
    return vars(known)


def kind_of(f: Field) -> dict[str, Any]:
    """What argparse needs to know of a field's type."""
    kind = f.metadata["kind"]
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if kind is dict:
        return {"type": pair, "nargs": "*", "metavar": "NAME=VALUE"}
    return {"type": kind, "metavar": f.name.rpartition("_")[2].upper()}


def help_of(f: Field) -> str:
    """A field's line in --help, with its default unless that depends."""
    text = f.metadata["help"].replace("%", "%%")
    plain = f.default is not None and f.metadata["kind"] in (int, float, str) and f.default != ""
    return f"{text} (default: {f.default})" if plain else text


def pair(text: str) -> tuple[str, Any]:
    """name=value, the value as JSON if it is that."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"wants NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def read_toml(path: str) -> dict[str, Any]:
    """The options in a TOML file, their types checked.

    Raises:
        UsageError: no TOML, an unknown key, or a value of another type. OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        try:
            table = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"--config {path}: {error}") from None
    return {name.replace("-", "_"): checked(name, value, path) for name, value in table.items()}


def checked(name: str, value: Any, path: str) -> Any:
    """A value of a TOML file, if its key is an option and its type that option's."""
    f = FIELDS.get(name.replace("-", "_"))
    if f is None:
        raise UsageError(f"--config {path}: no option {name!r}{nearest(name.replace('-', '_'), FIELDS)}")
    kind = f.metadata["kind"]
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise UsageError(f"--config {path}: {name} wants {kind.__name__}, got {value!r}")
    return value


def resumed(given: dict[str, Any]) -> Config:
    """The config of the run that goes on, in the parts that its numbers do not depend on as now given.

    Raises:
        UsageError: no run, or an option that would change its numbers.
    """
    file, stored = stored_options(given, RESUMABLE)
    if unknown := stored.keys() - FIELDS.keys():
        raise UsageError(f"--resume: {file} has options of another version: {', '.join(sorted(unknown))}")
    return Config(**{**stored, **given})


def stored_options(given: dict[str, Any], resumable: set[str]) -> tuple[Path, dict[str, Any]]:
    """The config.json of the run that --resume names, and the options in it.

    Raises:
        UsageError: no run there, or an option beside --resume that is not `resumable`.
    """
    if wrong := sorted(given.keys() - resumable):
        raise UsageError(f"--resume: goes on as the run began, without {flag(wrong[0])}")
    file = Path(given["resume"]) / "config.json"
    if not file.is_file():
        raise UsageError(f"--resume: no run in {given['resume']}: there is no {file}")
    return file, json.loads(file.read_text(encoding="utf-8"))
