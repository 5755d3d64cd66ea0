"""Transforms of pictures, with the names and arguments of torchvision.transforms.v2."""

from zoo.data.transforms import functional as functional
from zoo.data.transforms.geometry import InterpolationMode as InterpolationMode
from zoo.data.transforms.presets import ImageClassification as ImageClassification
from zoo.data.transforms.transform import CenterCrop as CenterCrop
from zoo.data.transforms.transform import Compose as Compose
from zoo.data.transforms.transform import ConvertImageDtype as ConvertImageDtype
from zoo.data.transforms.transform import Identity as Identity
from zoo.data.transforms.transform import Lambda as Lambda
from zoo.data.transforms.transform import Normalize as Normalize
from zoo.data.transforms.transform import Pad as Pad
from zoo.data.transforms.transform import PILToTensor as PILToTensor
from zoo.data.transforms.transform import Resize as Resize
from zoo.data.transforms.transform import ToDtype as ToDtype
from zoo.data.transforms.transform import ToImage as ToImage
from zoo.data.transforms.transform import ToPILImage as ToPILImage
from zoo.data.transforms.transform import ToTensor as ToTensor
from zoo.data.transforms.transform import Transform as Transform
