"""Seeded weights for the tests of the hub, and what a model computes with them."""

import numpy as np

import zoo
from zoo import models
from zoo.nn.init import skip_init

X = np.random.default_rng(5).standard_normal((2, 3, 33, 40), dtype=np.float32)


def seeded(name, **options):
    """A state_dict with the model's own keys and shapes, values as a trained model might have them."""
    rng = np.random.default_rng(len(name))
    made = {}
    for key, value in models.create(name, **options).state_dict().items():
        array = value.numpy()
        if key.endswith("running_var"):
            array = rng.uniform(0.5, 2, array.shape)
        elif key.endswith(("running_mean", "bias")):
            array = rng.standard_normal(array.shape) * 0.1
        made[key] = array.astype(value.dtype)
    return made


def logits_of(name, state, **options):
    """What the model of this name computes with a state_dict, without the hub."""
    with skip_init():
        model = models.create(name, **options).eval()
    model.load_state_dict({key: zoo.from_numpy(np.ascontiguousarray(array)) for key, array in state.items()})
    return run(model)


def run(model, x=X):
    with zoo.no_grad():
        return model(zoo.from_numpy(x)).numpy()
