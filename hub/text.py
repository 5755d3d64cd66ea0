"""python -m zoo.hub generate: a character model writes, character by character as it goes."""

import argparse
import sys

from zoo.hub.cli_commands import Report, access
from zoo.hub.loading import load
from zoo.models.charlm import CharLM


def generate(options: argparse.Namespace) -> Report:
    """a text that a character model goes on with"""
    model = load(options.model, **access(options))
    if not isinstance(model, CharLM):
        raise ValueError(f"generate: wants a character model, got {options.model}, a {type(model).__name__}")
    prompt = options.prompt
    sampling = {"temperature": options.temperature, "top_k": options.top_k, "top_p": options.top_p,
                "seed": options.seed}
    if options.json or not model.is_forward:              # a backward model's first character is the last of the text
        text = model.generate(prompt, options.length, **sampling)
        return Report({"model": options.model, "prompt": prompt, "text": text}, text)
    pieces = model.stream(prompt, options.length, **sampling)
    sys.stdout.write(prompt)
    for piece in pieces:
        sys.stdout.write(piece)
        sys.stdout.flush()
    return Report({}, "")
