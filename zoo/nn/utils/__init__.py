"""Helpers around layers: torch.nn.utils."""

from zoo.nn.utils import ctc as ctc
from zoo.nn.utils import rnn as rnn
from zoo.nn.utils.gradients import clip_grad_norm_ as clip_grad_norm_
from zoo.nn.utils.gradients import clip_grad_value_ as clip_grad_value_
from zoo.nn.utils.gradients import clip_grads_with_norm_ as clip_grads_with_norm_
from zoo.nn.utils.gradients import get_total_norm as get_total_norm
from zoo.nn.utils.gradients import parameters_to_vector as parameters_to_vector
from zoo.nn.utils.gradients import vector_to_parameters as vector_to_parameters
