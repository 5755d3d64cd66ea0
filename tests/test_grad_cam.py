"""zoo.utils.grad_cam: the paper's formula, the place of what is looked for, and a model left as it was."""
import numpy as np
import pytest

import zoo
from zoo import hub, nn
from zoo.data import digits
from zoo.utils.grad_cam import grad_cam


@pytest.fixture(scope="module")
def model():
    return hub.load("resnet20_digits")


def test_equals_the_formula_written_out(model):
    """After layer3 come the mean over positions and fc: the gradient of channel k is fc.weight[class, k] / (H W)."""
    images, classes = digits(train=False)[:6][0], zoo.tensor([0, 3, 3, 7, 9, 1])
    maps = model.forward_features(images)
    cam = (model.fc.weight[classes][:, :, None, None] * maps / 4).sum(1, keepdim=True).relu()
    cam = nn.functional.interpolate(cam, size=(8, 8), mode="bilinear", align_corners=False)[:, 0]
    expected = (cam / cam.amax((1, 2), keepdim=True).clamp(min=1e-12)).detach().numpy()
    assert expected.max() == 1 and maps.shape[2:] == (2, 2)
    for layer in ("layer3", model.layer3):
        np.testing.assert_allclose(grad_cam(model, layer, images, classes).numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("layer", ["layer2", "layer3"])
def test_heat_lies_on_the_digit_that_is_asked_for(model, layer, rng):
    """Two digits side by side, each asked for in turn: 98% of the heat maps and more were right, by chance half are."""
    images, labels = digits(train=False).tensors
    pairs = [(i, j) for i, j in rng.integers(0, len(labels), (40, 2)) if labels[i].item() != labels[j].item()]
    left, right = (list(side) for side in zip(*pairs, strict=True))
    both = zoo.cat([images[left], zoo.zeros(len(pairs), 1, 8, 8), images[right]], 3)
    found = 0
    first, last = slice(0, 8), slice(16, 24)
    for classes, here, there in ((labels[left], first, last), (labels[right], last, first)):
        heat = grad_cam(model, layer, both, classes).numpy()
        found += (heat[:, :, here].sum((1, 2)) > heat[:, :, there].sum((1, 2))).sum()
    assert found >= 0.9 * 2 * len(pairs)


def test_default_class_and_range(model):
    images = digits(train=False)[:5][0]
    heat = grad_cam(model, "layer2", images)
    assert zoo.equal(heat, grad_cam(model, "layer2", images, model(images).argmax(1)))
    assert heat.shape == (5, 8, 8) and heat.min().item() >= 0 and heat.amax((1, 2)).tolist() == pytest.approx([1.0] * 5)


def test_leaves_the_model_as_it_was(model):
    """No hook, no gradient; frozen parameters and no_grad around it change nothing."""
    images = digits(train=False)[:2][0]
    expected = grad_cam(model, "layer3", images)
    frozen = hub.load("resnet20_digits").requires_grad_(False)
    with zoo.no_grad():
        assert zoo.equal(grad_cam(frozen, "layer3", images), expected)
    assert all(p.grad is None for p in (*model.parameters(), *frozen.parameters())) and images.grad is None
    with pytest.raises(ValueError):
        grad_cam(frozen, "fc", images)
    assert not any(m._hooks for m in frozen.modules()) and not images.requires_grad


def test_wrong_layers(model):
    images = digits(train=False)[:2][0]
    with pytest.raises(ValueError, match=r"grad_cam: wants a layer that .*got Linear with \(2, 10\)"):
        grad_cam(model, "fc", images)
    with pytest.raises(ValueError, match="grad_cam: .*no call"):
        grad_cam(model, nn.ReLU(), images)
    with pytest.raises(AttributeError):
        grad_cam(model, "layer9", images)
