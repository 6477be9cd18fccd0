"""Special functions, under the names of `scipy.special`."""

from stopgrad.primitives import (
    digamma,
    entr,
    erf,
    erfc,
    erfinv,
    gammaln,
    log_ndtr,
    log_softmax,
    logit,
    logsumexp,
    ndtr,
    polygamma,
    sigmoid,
    softmax,
    softplus,
    xlog1py,
    xlogy,
)

expit = sigmoid
psi = digamma

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "gammaln",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "polygamma",
    "psi",
    "sigmoid",
    "softmax",
    "softplus",
    "xlog1py",
    "xlogy",
]
