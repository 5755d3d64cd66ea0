"""zoo as tests/yardsticks/opinfo_compare.py sees it, with every input on the cuda device.

    ZOO_INTERPRET=1 python tests/yardsticks/opinfo_compare.py opinfo_on_device --path . --path tests --max-samples 3
"""
import zoo

globals().update({name: getattr(zoo, name) for name in dir(zoo) if not name.startswith("__")})


def from_numpy(array):
    return zoo.from_numpy(array).to("cuda")
