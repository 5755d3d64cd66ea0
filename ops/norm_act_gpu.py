"""batch_norm_act on the GPU: two passes over channels-last memory each way; other layouts by the ops it is made of."""
from zoo.ops import cuda
from zoo.ops import norm_act as contract
from zoo.ops.norm_columns_gpu import Masked, Rows
from zoo.ops.norm_gpu import dense, dense_all, has_rows, new_with_rows, rows_of
from zoo.ops.shape import cast


@cuda.remembered
def batch_norm_act(input, weight=None, bias=None, residual=None, running_mean=None, running_var=None, eps=1e-5):
    op = contract.batch_norm_act
    _, moment, _ = op.check(input, weight, bias, residual, running_mean, running_var, eps)
    if not has_rows(input):
        return op.decompose(input, weight, bias, residual, running_mean, running_var, eps)
    x, y = rows_of(input), new_with_rows(input)
    rows = Rows(1, *x.shape, x)
    if running_mean is None:
        mean, var = rows.moments(x)
    else:
        mean, var = (dense(cast(v, moment.dtype)) for v in (running_mean, running_var))
    weight, bias = dense_all(weight, bias)
    rest = None if residual is None else rows_of(residual)
    rows.normalize(x, rest, rows_of(y), mean, var, weight, bias, eps, True)
    return y, mean, var


@cuda.remembered
def batch_norm_act_grad(dy, input, weight, y, mean, var, eps, batch, more=None):
    if not has_rows(input):
        return contract.batch_norm_act_grad.decompose(dy, input, weight, y, mean, var, eps, batch, more)
    dz = new_with_rows(input)
    masked = Masked(rows_of(y), rows_of(dz), None, None if more is None else rows_of(more))
    return *_gradients(dy, input, weight, mean, var, eps, batch, masked), dz


@cuda.remembered
def batch_norm_relu_grad(dy, input, weight, bias, y, mean, var, eps, batch):
    if not has_rows(input):
        return contract.batch_norm_relu_grad.decompose(dy, input, weight, bias, y, mean, var, eps, batch)
    return _gradients(dy, input, weight, mean, var, eps, batch, Masked(None, None, *dense_all(bias)))


def _gradients(dy, input, weight, mean, var, eps: float, batch: bool, masked: Masked):
    x, dx = rows_of(input), new_with_rows(input)
    statistics = dense_all(mean, var, None, None)
    affine = Rows(1, *x.shape, x).gradients(rows_of(dy), x, rows_of(dx), *statistics, *dense_all(weight), eps, batch,
                                         masked)
    return dx, *affine
