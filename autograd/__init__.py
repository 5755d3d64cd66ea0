"""Tensor, the graph and its walk, grad modes, custom Function, gradcheck, functional transforms."""
from zoo.autograd import functional as functional
from zoo.autograd import graph as graph
from zoo.autograd import methods as _methods  # noqa: F401  (attaches Tensor's methods)
from zoo.autograd.function import Function as Function
from zoo.autograd.gradcheck import gradcheck as gradcheck
from zoo.autograd.gradcheck import gradgradcheck as gradgradcheck
from zoo.autograd.legacy import Variable as Variable
from zoo.autograd.mode import detect_anomaly as detect_anomaly
from zoo.autograd.mode import enable_grad as enable_grad
from zoo.autograd.mode import inference_mode as inference_mode
from zoo.autograd.mode import no_grad as no_grad
from zoo.autograd.mode import set_detect_anomaly as set_detect_anomaly
from zoo.autograd.mode import set_grad_enabled as set_grad_enabled
from zoo.autograd.tensor import Tensor as Tensor
from zoo.autograd.tensor import backward as backward
from zoo.autograd.tensor import grad as grad
