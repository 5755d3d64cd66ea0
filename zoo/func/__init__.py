"""Transforms of functions: torch.func's names."""
from zoo.func.batch import vmap as vmap
from zoo.func.derivatives import grad as grad
from zoo.func.derivatives import grad_and_value as grad_and_value
from zoo.func.derivatives import hessian as hessian
from zoo.func.derivatives import jacfwd as jacfwd
from zoo.func.derivatives import jacrev as jacrev
from zoo.func.derivatives import jvp as jvp
from zoo.func.derivatives import vjp as vjp
from zoo.func.modules import functional_call as functional_call
from zoo.func.modules import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from zoo.func.modules import stack_module_state as stack_module_state
