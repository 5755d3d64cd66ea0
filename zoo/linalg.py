"""torch.linalg's names, as far as they are built."""
from zoo.autograd.called import called as _called
from zoo.autograd.methods import faces as _faces

for _face in _faces():
    for _name, _function in getattr(_face, "LINALG_FUNCTIONS", {}).items():
        globals()[_name] = _called(_name, _function, __name__)
