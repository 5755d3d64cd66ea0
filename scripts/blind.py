"""A plugin of pytest for runs on the driver stub, where every value is wrong: tests run to their ends all the same.

    PYTHONOPTIMIZE=1 python -m pytest --assert=plain -W ignore::pytest.PytestConfigWarning -p scripts.blind

So Python leaves out the statements `assert`, and here NumPy's comparisons go: a test launches what it launches on a
GPU, and what still fails is no value.
"""
import numpy as np

KEPT = "assert_raises", "assert_raises_regex", "assert_warns"
for name in dir(np.testing):
    if name.startswith("assert_") and name not in KEPT:
        setattr(np.testing, name, lambda *args, **options: None)
