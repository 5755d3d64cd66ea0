"""Datasets, and batches of them."""

from zoo.data.dataset import ConcatDataset as ConcatDataset
from zoo.data.dataset import DataLoader as DataLoader
from zoo.data.dataset import Dataset as Dataset
from zoo.data.dataset import Subset as Subset
from zoo.data.dataset import TensorDataset as TensorDataset
from zoo.data.dataset import default_collate as default_collate
from zoo.data.dataset import random_split as random_split
from zoo.data.digits import digits as digits
