"""Nested dicts, lists and tuples of tensors: what torch calls pytrees. Anything else is one leaf."""
from collections.abc import Callable, Iterator
from typing import Any


def leaves(tree: Any) -> list:
    """The leaves, from left to right.

    >>> leaves({"a": 1, "b": [2, (3, None)]})
    [1, 2, 3, None]
    """
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in leaves(part)]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def rebuilt(tree: Any, values: Iterator) -> Any:
    """A tree of the same form, whose leaves are the next ones of `values`.

    >>> rebuilt({"a": 1, "b": [2, (3, None)]}, iter("wxyz"))
    {'a': 'w', 'b': ['x', ('y', 'z')]}
    """
    if isinstance(tree, dict):
        return type(tree)((key, rebuilt(part, values)) for key, part in tree.items())
    if isinstance(tree, (list, tuple)):
        parts = [rebuilt(part, values) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return next(values)


def mapped(function: Callable, tree: Any) -> Any:
    """The tree with function(leaf) in place of each leaf."""
    return rebuilt(tree, map(function, leaves(tree)))


def along(prefix: Any, tree: Any, what: str) -> list:
    """One value of `prefix` for each leaf of the tree: a prefix that ends early stands for all leaves below.

    >>> along((0, None), ([1, 2], 3), "in_dims")
    [0, 0, None]
    """
    if not isinstance(prefix, (dict, list, tuple)):
        return [prefix] * len(leaves(tree))
    if isinstance(prefix, dict) != isinstance(tree, dict) or not isinstance(tree, (dict, list, tuple)):
        raise ValueError(f"vmap: {what} {prefix!r} is not compatible with the structure of {type(tree).__name__}")
    keys = tree if isinstance(tree, dict) else range(len(tree))
    if len(prefix) != len(tree) or isinstance(prefix, dict) and prefix.keys() != tree.keys():
        raise ValueError(f"vmap: {what} {prefix!r} is not compatible with {len(tree)} values")
    return [value for key in keys for value in along(prefix[key], tree[key], what)]
