"""python -m zoo.hub list | info | download | verify | predict | generate | convert | cache."""

import argparse
import json
import sys

from zoo.checkpoint.errors import FileError
from zoo.hub import cli_commands as commands
from zoo.hub.errors import HubError
from zoo.hub.text import generate
from zoo.utils.command_line import Parser, UsageError, nearest, run

JSON = ("--json", {"action": "store_true", "help": "print JSON"})
MODEL = ("model", {"help": "resnet50, resnet50.tv_in1k, owner/name of the Hub, or a folder"})
CACHE_DIR = ("--cache-dir", {"metavar": "FOLDER", "help": "the cache's folder; default: as HF_HOME says"})
ACCESS = (
    ("--weights", {"default": "default", "help": "tag, path, hf://owner/name/file@revision or https address"}),
    ("--offline", {"action": "store_true", "default": None, "help": "use only the cache"}),
    CACHE_DIR,
)
# name -> the function (its docstring's first line is the help) and its arguments.
COMMANDS = {
    "list": (commands.list_names, (
        ("pattern", {"nargs": "?", "default": "*", "help": 'such as "resnet*"'}),
        ("--pretrained", {"action": "store_true", "help": "only weights, with accuracy, size and licence"}),
    )),
    "info": (commands.info, (MODEL, ACCESS[0])),
    "download": (commands.download, (MODEL, *ACCESS)),
    "verify": (commands.verify, (
        ("pattern", {"nargs": "?", "default": "*", "help": "of the files' sources"}),
        ("--keep", {"action": "store_true", "help": "report bad files without deleting them"}),
        CACHE_DIR,
    )),
    "predict": (commands.predict, (
        MODEL,
        ("picture", {"nargs": "+", "help": "files of pictures"}),
        ("--topk", {"type": int, "default": 5, "metavar": "K", "help": "how many classes"}),
        ("--plot", {"metavar": "OUT.png", "help": "draw the picture with its bars"}),
        *ACCESS,
    )),
    "generate": (generate, (
        ("model", {"help": "a character model: charlm_kjv, charlm-en-forward"}),
        ("--prompt", {"default": "", "help": "how the text begins; a backward model's text ends with it"}),
        ("--length", {"type": int, "default": 500, "metavar": "N", "help": "characters to write"}),
        ("--temperature", {"type": float, "default": 1.0, "metavar": "T", "help": "0: always the most probable"}),
        ("--top-k", {"type": int, "metavar": "K", "help": "choose from the K most probable characters"}),
        ("--top-p", {"type": float, "metavar": "P", "help": "choose from the fewest of probability P together"}),
        ("--seed", {"type": int, "metavar": "N", "help": "the same seed writes the same text"}),
        *ACCESS,
    )),
    "convert": (commands.convert, (
        ("source", {"help": ".pt, .pth, .bin, .ckpt, .safetensors or .npz"}),
        ("target", {"help": "the suffix says the format: .safetensors, .pth, ..."}),
        ("--dtype", {"help": "of the floating tensors, such as float16; default: as they are"}),
        ("--key", {"help": 'which of several state dicts, such as "ema"'}),
    )),
    "cache": (commands.cache, (
        ("pattern", {"nargs": "?", "default": "*", "help": "of the files' sources"}),
        ("--prune", {"action": "store_true", "help": "remove the files, or those beyond the limits"}),
        ("--max-size", {"type": float, "metavar": "MB", "help": "with --prune: what may stay"}),
        ("--older-than", {"type": float, "metavar": "DAYS", "help": "with --prune: only files not read since"}),
        ("--dry-run", {"action": "store_true", "help": "with --prune: only say what would go"}),
        CACHE_DIR,
    )),
}


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0; 1 for what the network, the disk or a file refuses; 2 for a wrong option or name."""
    return run("zoo.hub", lambda: start(arguments), (FileError,))


def start(arguments: list[str] | None) -> int:
    """Runs the command that was asked for, and prints its report."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        report = options.command(options)
    except (HubError, FileError):
        raise
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error
    print(json.dumps(report.data, indent=1) if options.json else report.text, flush=True)
    return report.status


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options that a command line asks for; `command` is the function to run.

    Raises:
        UsageError: no such command or option, or a value that does not fit.
    """
    parser = Parser(prog="python -m zoo.hub", allow_abbrev=False, description="Pretrained models, verified.")
    made = parser.add_subparsers(metavar="command", dest="name", required=True)
    for name, (function, rows) in COMMANDS.items():
        text = (function.__doc__ or "").partition("\n")[0]
        command = made.add_parser(name, help=text, description=text, allow_abbrev=False)
        command.set_defaults(command=function)
        for flag, settings in (*rows, JSON):
            command.add_argument(flag, **settings)
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        wrong = arguments[0]
        raise UsageError(f"no command {wrong!r}{nearest(wrong, COMMANDS)}; there are {', '.join(COMMANDS)}")
    known, rest = parser.parse_known_args(arguments)
    if rest:
        flags = [flag for flag, _ in (*COMMANDS[known.name][1], JSON)]
        raise UsageError(f"no option {rest[0]!r}{nearest(rest[0].partition('=')[0], flags)}; --help lists them")
    return known


if __name__ == "__main__":
    sys.exit(main())
