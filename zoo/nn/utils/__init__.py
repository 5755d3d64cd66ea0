"""Helpers around layers: torch.nn.utils."""

from zoo.nn.fusion import fuse as fuse
from zoo.nn.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from zoo.nn.utils import ctc as ctc
from zoo.nn.utils import parametrizations as parametrizations
from zoo.nn.utils import parametrize as parametrize
from zoo.nn.utils import prune as prune
from zoo.nn.utils import rnn as rnn
from zoo.nn.utils.blank import skip_init as skip_init
from zoo.nn.utils.gradients import clip_grad_norm as clip_grad_norm
from zoo.nn.utils.gradients import clip_grad_norm_ as clip_grad_norm_
from zoo.nn.utils.gradients import clip_grad_value_ as clip_grad_value_
from zoo.nn.utils.gradients import clip_grads_with_norm_ as clip_grads_with_norm_
from zoo.nn.utils.gradients import get_total_norm as get_total_norm
from zoo.nn.utils.gradients import parameters_to_vector as parameters_to_vector
from zoo.nn.utils.gradients import vector_to_parameters as vector_to_parameters
from zoo.nn.utils.reparametrize import remove_spectral_norm as remove_spectral_norm
from zoo.nn.utils.reparametrize import remove_weight_norm as remove_weight_norm
from zoo.nn.utils.reparametrize import spectral_norm as spectral_norm
from zoo.nn.utils.reparametrize import weight_norm as weight_norm
