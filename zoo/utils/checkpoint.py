"""torch.utils.checkpoint's names; they live in autograd."""
from zoo.autograd.checkpoint import checkpoint as checkpoint
from zoo.autograd.checkpoint import checkpoint_sequential as checkpoint_sequential
