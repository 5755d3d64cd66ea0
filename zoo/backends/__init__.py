"""torch.backends' switches, as far as they mean something here: `zoo.backends.cuda.matmul.allow_tf32`."""
from zoo.backends import cpu as cpu
from zoo.backends import cuda as cuda
from zoo.backends import cudnn as cudnn
from zoo.backends import mkl as mkl
from zoo.backends import mkldnn as mkldnn
from zoo.backends import mps as mps
from zoo.backends import openmp as openmp
from zoo.backends import opt_einsum as opt_einsum
