"""Training: variables, optimizers, schedules, losses and checkpoints."""

from stopgrad.train import losses, schedules
from stopgrad.train.algorithms import OPTIMIZERS, SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Momentum, RMSProp
from stopgrad.train.checkpoint import load, load_arrays, save
from stopgrad.train.gradients import variable_gradients
from stopgrad.train.optimizer import Optimizer
from stopgrad.train.variable import Variable

__all__ = [
    "OPTIMIZERS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Momentum",
    "Optimizer",
    "RMSProp",
    "Variable",
    "load",
    "load_arrays",
    "losses",
    "save",
    "schedules",
    "variable_gradients",
]
