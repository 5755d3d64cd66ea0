"""torch.special's names, as far as they are built."""
from zoo.autograd.methods import faces as _faces

for _face in _faces():
    globals().update(getattr(_face, "SPECIAL_FUNCTIONS", {}))
