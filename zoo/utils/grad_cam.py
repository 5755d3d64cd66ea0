"""Grad-CAM: where in a picture a convolutional classifier saw a class."""

from typing import Any

from zoo.autograd.mode import enable_grad
from zoo.autograd.tensor import Tensor, grad
from zoo.nn import functional as F  # noqa: N812
from zoo.nn.module import Module


def grad_cam(model: Module, layer: Module | str, images: Tensor, classes: Tensor | None = None) -> Tensor:
    """Heat maps: relu of the layer's channels, each weighted by the mean of its gradient.

    cam = relu(sum_k a_k A_k), a_k = mean over positions of d logit_c / d A_k; divided by its greatest value, and
    enlarged to the pictures' size.

    Args:
        model: gives logits (N, num_classes) for images; put it in eval mode first.
        layer: the module whose output (N, K, H', W') is looked at, mostly the last feature map, or its path.
        images: (N, C, H, W), on the model's device.
        classes: (N,) which class of each picture; default the one with the greatest logit.

    Returns:
        (N, H, W), from 0 to 1; all 0 where nothing speaks for the class.

    Raises:
        ValueError: the layer did not run, or its output is no feature map.

    Example:
        >>> from zoo import hub
        >>> from zoo.data import digits
        >>> from zoo.utils.grad_cam import grad_cam
        >>> grad_cam(hub.load("resnet20_digits"), "layer3", digits(train=False)[:4][0]).shape
        (4, 8, 8)

    Source: R. Selvaraju et al., "Grad-CAM", https://arxiv.org/abs/1610.02391.
    """
    seen: list[Any] = []
    module = model.get_submodule(layer) if isinstance(layer, str) else layer
    hook = module.register_forward_hook(lambda module, inputs, output: seen.append(output))
    try:
        with enable_grad():
            logits = model(images.detach().requires_grad_())  # so that the maps have a gradient in a frozen model too
            chosen = logits.argmax(1) if classes is None else classes
            score = logits.gather(1, chosen.reshape(-1, 1)).sum()
    finally:
        hook.remove()
    if not seen or getattr(seen[-1], "ndim", 0) != 4:
        raise ValueError(f"grad_cam: wants a layer that runs and gives (N, K, H, W), got {type(module).__name__} with "
                         f"{getattr(seen[-1], 'shape', seen[-1]) if seen else 'no call'}")
    maps = seen[-1]
    (slope,) = grad(score, [maps])
    cam = (slope.mean((2, 3), keepdim=True) * maps.detach()).sum(1, keepdim=True).relu()
    cam = F.interpolate(cam, size=images.shape[-2:], mode="bilinear", align_corners=False)[:, 0]
    return cam / cam.amax((1, 2), keepdim=True).clamp(min=1e-12)
