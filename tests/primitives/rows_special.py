"""Rows of the operation table: special functions."""

from __future__ import annotations

import jax
import jax.scipy.special as jsp
import numpy as np
import torch

from stopgrad import primitives
from tests.primitives.points import ANY, EMPTY, INSIDE_ONE, POSITIVE, SCALAR, ZEROS, binary, unary, unary_edges
from tests.primitives.rows import Row

OTHER = np.array([[1.3, 0.4, -2.1], [-0.7, 2.5, 0.9]])
PROBABILITY = np.array([[0.1, 0.3, 0.45], [0.5, 0.72, 0.98]])
FAR = np.array([-800.0, -40.0, 40.0, 800.0])

ROWS = [
    Row("erf", primitives.erf, unary(ANY), unary_edges(FAR), jax=jsp.erf, torch=torch.erf),
    Row("erfc", primitives.erfc, unary(ANY), unary_edges(FAR), jax=jsp.erfc, torch=torch.erfc),
    Row(
        "erfinv",
        primitives.erfinv,
        unary(INSIDE_ONE),
        unary_edges(),
        torch=torch.erfinv,
        rtol=1e-11,
    ),
    Row("ndtr", primitives.ndtr, unary(ANY), unary_edges(FAR), jax=jsp.ndtr, torch=torch.special.ndtr),
    Row(
        "log_ndtr",
        primitives.log_ndtr,
        unary(ANY),
        unary_edges(np.array([-20.0, 20.0])),
        torch=torch.special.log_ndtr,
        rtol=1e-11,
    ),
    Row(
        "gammaln", primitives.gammaln, unary(POSITIVE), [(ZEROS,), (EMPTY,), (SCALAR,)], torch=torch.lgamma, rtol=1e-10
    ),
    Row(
        "digamma",
        primitives.digamma,
        unary(POSITIVE),
        [(EMPTY,), (SCALAR,)],
        jax=jsp.digamma,
        rtol=1e-10,
    ),
    Row(
        "polygamma",
        lambda x: primitives.polygamma(1, x),
        unary(POSITIVE),
        [(EMPTY,), (SCALAR,)],
        jax=lambda x: jsp.polygamma(1, x),
        rtol=1e-10,
    ),
    Row(
        "sigmoid",
        primitives.sigmoid,
        unary(ANY),
        unary_edges(FAR),
        jax=jax.nn.sigmoid,
        torch=torch.sigmoid,
        compare_edge_gradients=True,
    ),
    Row(
        "log_sigmoid",
        primitives.log_sigmoid,
        unary(ANY),
        [(ZEROS,), (EMPTY,), (SCALAR,), (FAR,)],
        jax=jax.nn.log_sigmoid,
        torch=torch.nn.functional.logsigmoid,
        compare_edge_gradients=True,
    ),
    Row(
        "softplus",
        primitives.softplus,
        unary(ANY),
        [(ZEROS,), (EMPTY,), (SCALAR,), (FAR,)],
        jax=jax.nn.softplus,
        compare_edge_gradients=True,
    ),
    Row(
        "logit",
        primitives.logit,
        unary(PROBABILITY),
        [(np.array([0.0, 1.0, -0.1, 1.1]),), (EMPTY,), (SCALAR,)],
        jax=jsp.logit,
        torch=torch.logit,
    ),
    Row("entr", primitives.entr, unary(POSITIVE), unary_edges(), jax=jsp.entr, torch=torch.special.entr),
    Row(
        "xlogy",
        primitives.xlogy,
        binary(ANY, POSITIVE),
        [(np.array([0.0, 0.0, 1.0]), np.array([0.0, 2.0, 0.0])), (EMPTY, EMPTY), (SCALAR, SCALAR)],
        jax=jsp.xlogy,
        torch=torch.xlogy,
    ),
    Row(
        "xlog1py",
        primitives.xlog1py,
        binary(ANY, POSITIVE),
        [(np.array([0.0, 0.0, 1.0]), np.array([-1.0, 2.0, -1.0])), (EMPTY, EMPTY), (SCALAR, SCALAR)],
        jax=jsp.xlog1py,
        torch=torch.special.xlog1py,
    ),
]
