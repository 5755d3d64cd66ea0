"""torch.utils' place for what is not nn: `zoo.utils.data`, `zoo.utils.checkpoint`, `zoo.utils.tensorboard`."""
from zoo.utils import checkpoint as checkpoint
from zoo.utils import data as data
