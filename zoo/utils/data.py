"""torch.utils.data's names; they live in zoo.data."""
from zoo.data import ConcatDataset as ConcatDataset
from zoo.data import DataLoader as DataLoader
from zoo.data import Dataset as Dataset
from zoo.data import Subset as Subset
from zoo.data import TensorDataset as TensorDataset
from zoo.data import default_collate as default_collate
from zoo.data import random_split as random_split
