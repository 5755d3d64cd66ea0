"""Checkpoint files without torch: safetensors, torch's zip and legacy formats, .npz. No code of a file ever runs."""
from zoo.checkpoint.errors import FileError as FileError
from zoo.checkpoint.reading import read as read
from zoo.checkpoint.state_dict import StateDict as StateDict
from zoo.checkpoint.state_dict import read_state_dict as read_state_dict
from zoo.checkpoint.writing import convert as convert
from zoo.checkpoint.writing import write as write
