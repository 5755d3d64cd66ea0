"""Data sets from files: folders of pictures, MNIST, CIFAR, tables and texts."""

from zoo.data.datasets.cifar import CIFAR10 as CIFAR10
from zoo.data.datasets.cifar import CIFAR100 as CIFAR100
from zoo.data.datasets.folder import DatasetFolder as DatasetFolder
from zoo.data.datasets.folder import ImageFolder as ImageFolder
from zoo.data.datasets.folder import VisionDataset as VisionDataset
from zoo.data.datasets.folder import pil_loader as pil_loader
from zoo.data.datasets.mnist import MNIST as MNIST
from zoo.data.datasets.mnist import FashionMNIST as FashionMNIST
from zoo.data.datasets.mnist import parse_idx as parse_idx
from zoo.data.datasets.tables import CSVDataset as CSVDataset
from zoo.data.datasets.tables import ParquetImages as ParquetImages
from zoo.data.datasets.tables import TextFolder as TextFolder
from zoo.data.digits import digits as digits
