"""Copies from a GPU to the host or to another GPU."""
import numpy as np

from zoo.ops import cuda
from zoo.ops.device import memory_order, put_as_it_lies
from zoo.ops.pointwise_gpu import is_dense


def to_device(x, where):
    """x (DeviceArray) on the device `where`; through the host if that is another GPU."""
    if where.type == "cuda" and where.index in (None, x.device):
        return x
    order = memory_order(x) if is_dense(x) else tuple(range(x.ndim))
    host = cuda.to_numpy(x.view(*(tuple(v[d] for d in order) for v in (x.shape, x.strides))))
    return put_as_it_lies(host.transpose(np.argsort(order)), where)
