"""What is timed on a GPU, by sections that run alone: the same calls of either library."""
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gpu_floors import Cost, attention, conv, gemm, lstm, moved


class Case(NamedTuple):
    """One row. make(lib) gives the call. images: of a call, for images per second.

    whole: is it a whole model or step, which is also timed as a CUDA graph and by torch.compile? Its make takes as
    `compiled` what its network goes through; the optimizer is torch's own then, as in torch's guides.
    """

    name: str
    make: Callable[..., Callable]
    cost: Cost | None = None
    images: int = 0
    whole: bool = False


def rand(lib: Any, *shape: int, dtype: str = "bfloat16") -> Any:
    return lib.randn(*shape, device="cuda").to(getattr(lib, dtype))


def last(lib: Any, x: Any) -> Any:
    return x.to(memory_format=lib.channels_last)


def gemms(tiny: bool) -> Iterator[Case]:
    for dtype in ("bfloat16", "float32"):
        for n in (16,) if tiny else (1024, 2048, 4096, 8192):
            def make(lib, n=n, dtype=dtype):
                a, b = (rand(lib, n, n, dtype=dtype) for _ in range(2))
                return lambda: a @ b
            yield Case(f"matmul {n}^3 {dtype}", make, gemm(n, n, n, dtype))


def resnet50_layers(tiny: bool) -> list[tuple[int, int, int, int, int]]:
    """The distinct convolutions (c, k, r, stride, side) of ResNet-50."""
    if tiny:
        return [(8, 8, 1, 1, 4), (8, 8, 3, 2, 4)]
    found = {(3, 64, 7, 2, 224): None}
    before, side = 64, 56
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            for layer in ((before, width, 1, 1, side), (width, width, 3, stride, side),
                          (width, 4 * width, 1, 1, side // stride)):
                found[layer] = None
            if not block:
                found[before, 4 * width, 1, stride, side] = None
            before, side = 4 * width, side // stride
    return list(found)


def convs(tiny: bool) -> Iterator[Case]:
    n = 2 if tiny else 256
    for c, k, r, stride, side in resnet50_layers(tiny):
        for part in ("forward", "dX", "dW"):
            def make(lib, c=c, k=k, r=r, stride=stride, side=side, part=part):
                x, w = last(lib, rand(lib, n, c, side, side)), last(lib, rand(lib, k, c, r, r))
                conv2d = lib.nn.functional.conv2d
                if part == "forward":
                    return lambda: conv2d(x, w, None, stride, r // 2)
                wanted = (x if part == "dX" else w).requires_grad_()
                y = conv2d(x, w, None, stride, r // 2)
                g = last(lib, rand(lib, *y.shape))
                return lambda: lib.autograd.grad(y, wanted, g, retain_graph=True)
            yield Case(f"conv {c}->{k} {r}x{r}/{stride} {side}x{side} {part}", make, conv(n, c, k, r, stride, side))


def layers(tiny: bool) -> Iterator[Case]:
    rows, columns, classes = (8, 32, 40) if tiny else (65536, 4096, 32000)
    shape = (2, 8, 8, 8) if tiny else (256, 64, 112, 112)
    pixels = shape[0] * shape[1] * shape[2] * shape[3]

    def flat(call, arrays, *, size=rows * columns):
        def make(lib):
            x = rand(lib, rows, columns)
            return lambda: call(lib, x)
        return make, moved(size, arrays)

    def picture(call, arrays):
        def make(lib):
            x = last(lib, rand(lib, *shape))
            ones = lib.ones(shape[1], device="cuda")
            return lambda: call(lib, x, ones)
        return make, moved(pixels, arrays)

    def entropy(lib):
        logits = rand(lib, max(rows // 8, 2), classes)
        labels = lib.randint(0, classes, (logits.shape[0],), device="cuda")
        return lambda: lib.nn.functional.cross_entropy(logits, labels)
    yield Case("add", *flat(lambda lib, x: x + x, 2))
    yield Case("gelu", *flat(lambda lib, x: lib.nn.functional.gelu(x), 2))
    yield Case("dropout", *flat(lambda lib, x: lib.nn.functional.dropout(x, 0.1), 2))
    yield Case("sum of rows", *flat(lambda lib, x: x.sum(-1), 1))
    yield Case("softmax", *flat(lambda lib, x: lib.softmax(x, -1), 2))
    yield Case("layer_norm", *flat(lambda lib, x: lib.nn.functional.layer_norm(x, x.shape[-1:]), 2))
    yield Case("cross_entropy", entropy, moved(max(rows // 8, 2) * classes, 1))
    yield from attentions(tiny)
    yield Case("batch_norm in training", *picture(
        lambda lib, x, ones: lib.nn.functional.batch_norm(x, None, None, ones, ones, True), 3))
    yield Case("max_pool2d 3x3/2", *picture(lambda lib, x, ones: lib.nn.functional.max_pool2d(x, 3, 2, 1), 1.25))
    yield Case("adaptive_avg_pool2d", *picture(lambda lib, x, ones: lib.nn.functional.adaptive_avg_pool2d(x, 1), 1))


def attentions(tiny: bool) -> Iterator[Case]:
    """Causal heads of 64: forward, and the gradients of all three."""
    batch, heads, length = (1, 2, 16) if tiny else (8, 16, 2048)
    cost = attention(batch * heads, length, 64)
    for part, flops, nbytes in (("forward", 1.0, 1.0), ("gradients", 2.5, 2.0)):
        def make(lib, part=part):
            q, k, v, g = (rand(lib, batch, heads, length, 64) for _ in range(4))
            attend = lib.nn.functional.scaled_dot_product_attention
            if part == "forward":
                return lambda: attend(q, k, v, is_causal=True)
            wanted = [x.requires_grad_() for x in (q, k, v)]
            y = attend(q, k, v, is_causal=True)
            return lambda: lib.autograd.grad(y, wanted, g, retain_graph=True)
        yield Case(f"causal attention {batch}x{heads}x{length}x64 {part}", make,
                   cost._replace(flops=flops * cost.flops, nbytes=nbytes * cost.nbytes))


def optimizers(tiny: bool) -> Iterator[Case]:
    count, size = (3, 64) if tiny else (160, 160_000)
    for name, arrays in (("SGD", 5), ("AdamW", 7)):
        def make(lib, name=name):
            ps = [lib.nn.Parameter(lib.ones(size, device="cuda")) for _ in range(count)]
            for p in ps:
                p.grad = lib.ones(size, device="cuda")
            options = {"momentum": 0.9} if name == "SGD" else {}
            return getattr(lib.optim, name)(ps, lr=0.0, **options).step
        yield Case(f"{name}, {count} parameters of {size:,}", make, moved(count * size, arrays, 4))


def recurrent(tiny: bool) -> Iterator[Case]:
    size, steps, batch = (8, 3, 2) if tiny else (1024, 128, 64)

    def make(lib):
        layer, x = lib.nn.LSTM(size, size).to("cuda").to(lib.bfloat16), rand(lib, steps, batch, size)

        def call():
            with lib.no_grad():
                return layer(x)[0]
        return call
    yield Case(f"LSTM H={size} T={steps} B={batch} forward", make, lstm(steps, batch, size))


def model_of(lib: Any, name: str, tiny: bool) -> Any:
    """A model of either library's zoo; for a check of this script a few layers."""
    if tiny:
        nn = lib.nn
        return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                             nn.Flatten(), nn.Linear(4, 10)).to("cuda")
    if lib.__name__ == "zoo":
        from zoo import models
    else:
        from torchvision import models  # pyright: ignore[reportMissingImports]
    return last(lib, getattr(models, name)().to("cuda"))


def as_it_is(network: Any) -> Any:
    return network


def inference(tiny: bool) -> Iterator[Case]:
    side = 8 if tiny else 224
    floors = {("resnet50", 256): Cost(2.094e12, 14.5e9), ("vgg16", 256): Cost(7.92e12, 20e9)}
    for name, batch in (("resnet50", 256), ("resnet50", 1), ("vgg16", 256)):
        count = min(batch, 2) if tiny else batch

        def make(lib, compiled=as_it_is, name=name, count=count):
            model, x = model_of(lib, name, tiny).to(lib.bfloat16).eval(), last(lib, rand(lib, count, 3, side, side))
            model = compiled(model)

            def call():
                with lib.no_grad():
                    return model(x)
            return call
        yield Case(f"{name} inference, batch {batch}, bfloat16", make, floors.get((name, batch)), count, True)


def training(tiny: bool) -> Iterator[Case]:
    side = 8 if tiny else 224
    for name, batch in (("resnet50", 256), ("vgg16", 64)):
        count = 2 if tiny else batch

        def make(lib, compiled=as_it_is, name=name, count=count):
            model, x = model_of(lib, name, tiny), last(lib, rand(lib, count, 3, side, side, dtype="float32"))
            labels = lib.randint(0, 10, (count,), device="cuda")
            optimizer = lib.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
            network = compiled(model)

            def step():
                optimizer.zero_grad()
                with lib.autocast("cuda", dtype=lib.bfloat16):
                    loss = lib.nn.functional.cross_entropy(network(x), labels)
                loss.backward()
                optimizer.step()
                return loss
            return step
        cost = Cost(6.22e12, 95e9) if (name, batch) == ("resnet50", 256) else None
        yield Case(f"{name} training step, batch {batch}, autocast", make, cost, count, True)


SECTIONS = {"gemm": gemms, "conv": convs, "layers": layers, "optimizers": optimizers, "recurrent": recurrent,
            "inference": inference, "training": training}
