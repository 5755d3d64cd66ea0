"""Rows of layers in training mode, forward + backward, and of optimizers' steps."""
from functools import partial

import numpy as np
import rnn
from cases_ops import train
from protocol import Case, both

# name, how it is made from nn, the shape of its input
LAYERS = (
    ("Linear 1024 to 4096, batch 128", lambda nn: nn.Linear(1024, 4096), (128, 1024)),
    ("Conv2d 64 to 128, 3x3, batch 16, 28x28", lambda nn: nn.Conv2d(64, 128, 3, padding=1), (16, 64, 28, 28)),
    ("BatchNorm2d 64, batch 16, 56x56", lambda nn: nn.BatchNorm2d(64), (16, 64, 56, 56)),
    ("LayerNorm 512, 4096 rows", lambda nn: nn.LayerNorm(512), (4096, 512)),
    ("TransformerEncoderLayer 256, 4 heads, 16x128",
     lambda nn: nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True), (16, 128, 256)),
)
RECURRENT = {"LSTM": 1.10, "GRU": 0.85}              # issue 5
# Parameters of the optimizers' steps, 10 M in 13 tensors as in a ResNet; at most times torch's time (issue 5).
SIZES = [2359296] * 3 + [589824] * 4 + [65536] * 6
OPTIMIZERS = (("SGD", {}, None), ("SGD", {"momentum": 0.9}, None), ("Adam", {}, 1.0), ("AdamW", {}, None))


def weights_of(make) -> dict:
    """The state of torch's layer: both libraries get the same."""
    import torch  # pyright: ignore[reportMissingImports]
    torch.manual_seed(0)
    return {name: t.numpy() for name, t in make(torch.nn).state_dict().items()}


def layer(lib, make, shape, weights):
    made = make(lib.nn)
    made.load_state_dict({name: lib.tensor(a) for name, a in weights().items()})
    x = lib.tensor(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))
    parameters = list(made.parameters())
    return train(lib, lambda x, *_: made(x), [x, *parameters], [])


def recurrent(lib, kind):
    return rnn.cases(lib, kind, 256)[1]


def step(lib, name, options):
    rng = np.random.default_rng(0)
    parameters = [lib.nn.Parameter(lib.tensor(rng.standard_normal(n, dtype=np.float32))) for n in SIZES]
    for p in parameters:
        p.grad = lib.tensor(rng.standard_normal(len(p), dtype=np.float32))
    optimizer = getattr(lib.optim, name)(parameters, lr=1e-4, **options)

    def call():
        optimizer.step()
        return parameters[-1]
    return call


def cases() -> list[Case]:
    layers = [(name, partial(layer, make=make, shape=shape, weights=partial(weights_of, make)), {})
              for name, make, shape in LAYERS]
    layers += [(f"{kind} T=128 B=32 H=256", partial(recurrent, kind=kind), {"torch": wanted})
               for kind, wanted in RECURRENT.items()]
    steps = [(f"{name}{''.join(f' {k}' for k in options)}, 10 M parameters", partial(step, name=name, options=options),
              {} if wanted is None else {"torch": wanted}) for name, options, wanted in OPTIMIZERS]
    return [*(Case("layers", f"{name}, forward+backward", both(make), wanted, budget=0.2)
              for name, make, wanted in layers),
            *(Case("steps", name, both(make), wanted, budget=0.2) for name, make, wanted in steps)]
