"""Records the launches of networks of real sizes, forward and backward, without running them and without memory.

    python scripts/record_real_sizes.py launches.jsonl
    python scripts/compile_kernels.py --most 0 launches.jsonl

The tests' arrays are small, and block sizes, warps and splits depend on the size: this covers what a GPU will run.
"""

import os
import sys
from functools import partial

os.environ["ZOO_INTERPRET"] = "1"

import zoo  # noqa: E402
import zoo.nn.functional as F  # noqa: E402
from zoo.ops.cuda.record import dry_run  # noqa: E402

N = 64
CONVOLUTIONS = [  # x, weight, stride, padding, groups: layers of VGG, MobileNet and ResNeXt
    ((N, 3, 224, 224), (64, 3, 3, 3), 1, 1, 1),
    ((N, 64, 224, 224), (64, 64, 3, 3), 1, 1, 1),
    ((N, 256, 56, 56), (512, 256, 3, 3), 1, 1, 1),
    ((N, 512, 14, 14), (512, 512, 3, 3), 1, 1, 1),
    ((N, 3, 224, 224), (32, 3, 3, 3), 2, 1, 1),
    ((N, 96, 56, 56), (96, 1, 3, 3), 1, 1, 96),
    ((N, 144, 56, 56), (144, 1, 3, 3), 2, 1, 144),
    ((N, 960, 7, 7), (160, 960, 1, 1), 1, 0, 1),
    ((N, 128, 56, 56), (128, 4, 3, 3), 1, 1, 32),
]
PRODUCTS = [
    ((4096, 4096), (4096, 4096)),
    ((N, 2048), (2048, 1000)),
    ((12, 512, 64), (12, 64, 512)),
    ((8, 4096), (4096, 4096)),
]


def backward(*outputs):
    """Gradients of everything that wants one."""
    for y in outputs:
        y.backward(zoo.empty(y.shape, dtype=y.dtype, device=y.device))


def leaf(shape, dtype):
    return zoo.empty(shape, dtype=dtype, device="cuda").requires_grad_()


def convolutions(dtype):
    for x, w, stride, padding, groups in CONVOLUTIONS:
        backward(F.conv2d(leaf(x, dtype), leaf(w, dtype), leaf(w[:1], dtype), stride, padding, 1, groups))


def residual_networks(dtype):
    """All 53 convolutions of ResNet-50, channels-last: a training step, and inference of a batch and of one picture."""
    with zoo.nn.init.skip_init():
        model = zoo.models.resnet50().to("cuda", dtype, memory_format=zoo.channels_last)
    image = partial(zoo.empty, dtype=dtype, device="cuda")
    if dtype == zoo.bfloat16:                              # of float32, the layers above are enough
        backward(model(image((N, 3, 224, 224)).to(memory_format=zoo.channels_last)))
    model.eval()
    with zoo.inference_mode():
        for n in (N, 1):
            model(image((n, 3, 224, 224)).to(memory_format=zoo.channels_last))


def products(dtype):
    for a, b in PRODUCTS:
        backward(leaf(a, dtype) @ leaf(b, dtype))
    backward(F.linear(leaf((N, 2048), dtype), leaf((1000, 2048), dtype), leaf((1000,), dtype)))


def norms(dtype):
    for shape in ((N, 256, 56, 56), (N, 2048, 7, 7)):
        channels = shape[1]
        mean, var = (zoo.empty((channels,), dtype=zoo.float32, device="cuda") for _ in range(2))
        for training in (True, False):
            w, b = leaf((channels,), dtype), leaf((channels,), dtype)
            backward(F.batch_norm(leaf(shape, dtype), mean, var, w, b, training))
        backward(F.group_norm(leaf(shape, dtype), 32, leaf((channels,), dtype), leaf((channels,), dtype)))
    backward(F.layer_norm(leaf((8192, 1024), dtype), (1024,), leaf((1024,), dtype), leaf((1024,), dtype)))


def classifiers(dtype):
    x = leaf((N, 64, 112, 112), dtype)
    y = F.relu(F.max_pool2d(x, 3, 2, 1) + leaf((N, 64, 56, 56), dtype))
    backward(F.adaptive_avg_pool2d(y, 1))
    for rows, classes in ((N, 1000), (8192, 32000)):
        target = zoo.empty((rows,), dtype=zoo.int64, device="cuda")
        backward(F.cross_entropy(leaf((rows, classes), dtype), target))
        backward(F.log_softmax(leaf((rows, classes), dtype), dim=-1), F.softmax(leaf((rows, classes), dtype), dim=-1))
    backward(F.dropout(F.gelu(leaf((8192, 4096), dtype)), 0.1, True))


def reductions(dtype):
    x = leaf((8192, 4096), dtype)
    for dim in (0, 1, None):
        backward(x.sum(dim), x.mean(dim))
        x.detach().amax(dim if dim is not None else (0, 1))
    for line in (zoo.argmax, zoo.cumsum, zoo.sort):
        line(x.detach(), dim=1)
    zoo.topk(x.detach(), 5, dim=1)
    backward(F.embedding(zoo.empty((64, 512), dtype=zoo.int64, device="cuda"), leaf((32000, 1024), dtype)))


def recurrences(dtype):
    """H = 256 and 1024: weights held by one cooperative launch, and streamed or a launch per step."""
    for hidden in (256, 1024):
        x = leaf((4, 32, hidden), dtype)
        for kind in (zoo.nn.LSTM, zoo.nn.GRU, zoo.nn.RNN):
            with zoo.nn.init.skip_init():
                layer = kind(hidden, hidden, device="cuda", dtype=dtype)
            backward(layer(x)[0])


def attentions(dtype):
    """Heads of 64 and 128, causal with dropout, and with a mask that has a gradient."""
    for width in (64, 128):
        q, k, v = (leaf((4, 16, 2048, width), dtype) for _ in range(3))
        backward(F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True))
        backward(F.scaled_dot_product_attention(q, k, v, attn_mask=leaf((16, 2048, 2048), dtype)))


def optimizers(dtype):
    rules = "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD", "Lion"
    sgd = partial(zoo.optim.SGD, lr=0.1, momentum=0.9, weight_decay=1e-4)
    for make in (sgd, *(getattr(zoo.optim, name) for name in rules)):
        parameters = [leaf(shape, dtype) for shape in ((512, 512, 3, 3), (1000, 2048), (1000,))]
        for p in parameters:
            p.grad = zoo.empty(p.shape, dtype=dtype, device="cuda")
        make(parameters).step()


CASES = (convolutions, residual_networks, products, norms, classifiers, reductions, recurrences, attentions, optimizers)


def main():
    failed = 0
    with dry_run(sys.argv[1]):
        for case in CASES:
            for dtype in (zoo.float32, zoo.bfloat16):
                try:
                    case(dtype)
                except Exception as e:
                    failed += 1
                    print(f"{case.__name__} {dtype}: {type(e).__name__}: {e}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
