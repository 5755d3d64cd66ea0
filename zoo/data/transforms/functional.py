"""The functions behind the transforms: torchvision.transforms.v2.functional's names."""

from zoo.data.transforms.color import adjust_brightness as adjust_brightness
from zoo.data.transforms.color import adjust_contrast as adjust_contrast
from zoo.data.transforms.color import adjust_hue as adjust_hue
from zoo.data.transforms.color import adjust_saturation as adjust_saturation
from zoo.data.transforms.color import adjust_sharpness as adjust_sharpness
from zoo.data.transforms.color import autocontrast as autocontrast
from zoo.data.transforms.color import equalize as equalize
from zoo.data.transforms.color import erase as erase
from zoo.data.transforms.color import invert as invert
from zoo.data.transforms.color import posterize as posterize
from zoo.data.transforms.color import rgb_to_grayscale as rgb_to_grayscale
from zoo.data.transforms.color import solarize as solarize
from zoo.data.transforms.geometry import affine as affine
from zoo.data.transforms.geometry import center_crop as center_crop
from zoo.data.transforms.geometry import crop as crop
from zoo.data.transforms.geometry import horizontal_flip as horizontal_flip
from zoo.data.transforms.geometry import pad as pad
from zoo.data.transforms.geometry import resize as resize
from zoo.data.transforms.geometry import resized_crop as resized_crop
from zoo.data.transforms.geometry import rotate as rotate
from zoo.data.transforms.geometry import vertical_flip as vertical_flip
from zoo.data.transforms.picture import convert_image_dtype as convert_image_dtype
from zoo.data.transforms.picture import get_num_channels as get_num_channels
from zoo.data.transforms.picture import get_size as get_size
from zoo.data.transforms.picture import normalize as normalize
from zoo.data.transforms.picture import pil_to_tensor as pil_to_tensor
from zoo.data.transforms.picture import to_dtype as to_dtype
from zoo.data.transforms.picture import to_image as to_image
from zoo.data.transforms.picture import to_pil_image as to_pil_image
from zoo.data.transforms.picture import to_tensor as to_tensor

hflip, vflip = horizontal_flip, vertical_flip
