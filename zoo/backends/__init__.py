"""torch.backends' switches, as far as they mean something here: `zoo.backends.cuda.matmul.allow_tf32`."""
from zoo.backends import cpu as cpu
from zoo.backends import cuda as cuda
from zoo.backends import cudnn as cudnn
from zoo.backends import mps as mps
