"""torch.utils' place for what is not nn: `zoo.utils.data`."""
from zoo.utils import data as data
