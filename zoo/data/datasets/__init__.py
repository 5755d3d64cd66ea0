"""Data sets from files: folders of pictures, MNIST, CIFAR, tables and texts."""

from zoo.data.datasets.folder import DatasetFolder as DatasetFolder
from zoo.data.datasets.folder import ImageFolder as ImageFolder
from zoo.data.datasets.folder import VisionDataset as VisionDataset
from zoo.data.datasets.folder import pil_loader as pil_loader
from zoo.data.digits import digits as digits
