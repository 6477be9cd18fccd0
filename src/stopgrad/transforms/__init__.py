"""Transforms: functions that differentiate functions, and the tape, which differentiates what has been recorded."""

from stopgrad.transforms.custom import custom_gradient, custom_jvp
from stopgrad.transforms.grad import grad, grads, value_and_grad
from stopgrad.transforms.gradients import gradients
from stopgrad.transforms.jacobian import hessian, jacobian
from stopgrad.transforms.products import hvp, jvp, vjp
from stopgrad.transforms.tape import GradientTape

__all__ = [
    "GradientTape",
    "custom_gradient",
    "custom_jvp",
    "grad",
    "gradients",
    "grads",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "value_and_grad",
    "vjp",
]
