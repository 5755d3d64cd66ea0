"""Custom autograd functions and their check; a straight-through estimator; gradient reversal; double backward."""
import numpy as np
import torch
from torch.autograd import Function, Variable, gradcheck


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input ** 3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input ** 2 - 1)


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class RoundSTE(Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.mark_non_differentiable()
        ctx.levels = levels
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, g):
        return g.clone(), None


class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


def main(fill):
    rng = np.random.RandomState(0)
    x = torch.linspace(-3, 3, 50, dtype=torch.float)
    y = torch.sin(x)
    a, b = torch.full((), 0.1, requires_grad=True), torch.full((), -0.2, requires_grad=True)
    log = []
    for _ in range(5):
        y_pred = a + LegendrePolynomial3.apply(b * x)
        loss = (y_pred - y).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            a -= 1e-4 * a.grad
            b -= 1e-4 * b.grad
            a.grad = None
            b.grad.zero_()
        log += [loss.item(), a.item(), b.item()]
    args = [torch.tensor(rng.randn(*s), dtype=torch.double, requires_grad=True) for s in ((4, 3), (2, 3), (2,))]
    assert gradcheck(LinearFunction.apply, args, eps=1e-6, atol=1e-4)
    v = Variable(torch.Tensor([0.24, 0.77]), requires_grad=True)
    (RoundSTE.apply(v, 4) * torch.Tensor([2, 3])).sum().backward()
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    GradReverse.apply(w ** 2, 0.5).sum().backward()
    z = torch.tensor([1.5, -0.5], requires_grad=True)
    g, = torch.autograd.grad((z ** 3).sum(), z, create_graph=True)
    penalty = (g.norm(2) - 1) ** 2
    penalty.backward()
    jac = torch.autograd.functional.jacobian(lambda t: t.exp().sum(dim=0), torch.ones(2, 3))
    return log, v.grad.numpy(), w.grad.numpy(), z.grad.numpy(), jac.numpy()
