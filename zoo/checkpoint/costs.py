"""What objects take in CPython's memory: upper bounds in bytes, counted before the objects are made."""
LIST, SET, DICT, ORDERED = 96, 240, 240, 640              # an empty list or tuple, set, dict; an OrderedDict or array
ITEM, DICT_ITEM, ORDERED_ITEM = 16, 128, 256              # an item of a list, of a dict or set, of an OrderedDict
NUMBER, TEXT = 40, 80                                     # an int or float; a string or bytes without its characters
