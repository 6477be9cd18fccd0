"""Programs that are exported and read back (name, function, arguments), and damage done to files."""

from __future__ import annotations

import numpy as np

import stopgrad as sg
from stopgrad import nn


def _normal(*shape):
    return np.random.default_rng(sum(shape) + 7).normal(size=shape)


X = _normal(3, 4)
Y = np.abs(_normal(3, 4)) + 0.1
IMAGE = _normal(2, 6, 6, 2)
SEQUENCE = _normal(2, 7, 3)
W1, W2 = _normal(4, 5), _normal(5, 3)
LABELS = np.eye(3)


def mlp(x, w1, w2):
    return sg.sum(nn.log_softmax(sg.tanh(x @ w1) @ w2) * LABELS)


def stopped_target(x, w1, w2):
    logits = sg.relu(x @ w1) @ w2
    target = sg.stop_gradient(nn.softmax(logits * 2), name="target")
    return -sg.mean(sg.sum(target * nn.log_softmax(logits), axis=-1))


def conv_net(image, first, second):
    y = sg.max_pool(sg.relu(sg.conv(image, first, 1, "SAME")), 2)
    y = sg.conv(y, second, 1, ((1, 0), (0, 1)), 2) + 0.5
    return nn.softmax(sg.reshape(sg.avg_pool(y, 2, 1, "SAME"), (2, -1)))


PROGRAMS = {
    "stop": (lambda x: x * sg.stop_gradient(x), (3.0,)),
    "named stop": (lambda x: sg.exp(x) * sg.stop_gradient(sg.sin(x), name="critic"), (X,)),
    "masked stop": (lambda x: sg.stop_gradient(x, where=X > 0) ** 3, (X,)),
    "only a stop": (lambda x: sg.stop_gradient(x), (X,)),
    "the input": (lambda x: x, (X,)),
    "unused input": (lambda x, y: x * 2, (X, Y)),
    "shared outputs": (lambda x: (sg.exp(x), sg.exp(x) * 2, x), (X,)),
    "number": (lambda x: (x, 2.0), (X,)),
    "arithmetic": (lambda x, y: (x + y * 2 - 1 / y) / (x * x + 1) + y**1.5 + x**2 - (-x), (X, Y)),
    "functions": (
        lambda x, y: sg.exp(x) + sg.log(y) + sg.sqrt(y) + sg.sin(x) + sg.cos(x) + sg.tanh(x) + sg.arctan(x),
        (X, Y),
    ),
    "more functions": (
        lambda x, y: (
            sg.expm1(x * 1e-3)
            + sg.log1p(y * 1e-6)
            + sg.erf(x)
            + sg.rsqrt(y)
            + sg.abs(x)
            + sg.log2(y)
            + sg.exp2(x)
            + sg.sinh(x)
            + sg.arcsinh(x)
            + sg.log10(y)
            + sg.cbrt(x)
            + sg.hypot(x, y)
        ),
        (X, Y),
    ),
    "activations": (
        lambda x: (
            sg.relu(x)
            + sg.sigmoid(x)
            + sg.softplus(x)
            + sg.elu(x)
            + sg.leaky_relu(x)
            + nn.gelu(x)
            + nn.gelu(x, approximate=True)
            + nn.silu(x)
            + sg.log_sigmoid(x)
            + sg.relu6(4 * x)
            + sg.selu(x)
        ),
        (X,),
    ),
    "angles": (
        lambda x, y: sg.arctan2(x, y) + sg.arctan2(x, -y) + sg.arctan2(sg.stop_gradient(x - x), sg.sign(x)) / 2,
        (X, Y),
    ),
    "safe": (lambda x, y: sg.divide_no_nan(x, x - x) + sg.xlogy(y, y) + sg.multiply_no_nan(x, y - y), (X, Y)),
    "choices": (
        lambda x, y: (
            sg.where(x > y, x, y)
            + sg.maximum(x, 0.5)
            - sg.minimum(x, y)
            + sg.clip(x, -0.5, 0.5)
            + sg.where((x > 0) & ~(y < 1), 1.0, x)
        ),
        (X, Y),
    ),
    "rounding": (
        lambda x: sg.floor(x) + sg.ceil(x * 3) + sg.rint(x * 5) + sg.sign(x) + sg.trunc(x * 7) + x % 0.7,
        (X,),
    ),
    "integers": (lambda x: sg.astype(x * 10, "int32") * 3 + sg.arange(4), (X,)),
    "mixed dtypes": (lambda x: x * np.arange(4) + sg.astype(x, "float32") + (x > 0), (X,)),
    "reductions": (
        lambda x: (
            sg.sum(x, 0),
            sg.mean(x, keepdims=True),
            sg.max(x, 1),
            sg.min(x),
            sg.prod(x, 1),
            sg.var(x, 0),
            sg.std(x, 1, ddof=1),
            sg.logsumexp(x, 1),
            sg.argmax(x, 1),
            sg.argmin(x),
            sg.any(x > 1, 0),
            sg.count_nonzero(x > 0, 1),
            sg.linalg.norm(x),
        ),
        (X,),
    ),
    "scans": (lambda x: sg.cumsum(x, 1) + sg.cumulative_sum(x, 0, exclusive=True, reverse=True), (X,)),
    "normalised": (lambda x: nn.softmax(x, 0) + nn.softmax(x, (0, 1)) + sg.standardize(x), (X,)),
    "shapes": (
        lambda x: (
            sg.reshape(x, (2, 6)),
            x.T,
            sg.expand_dims(x, 1),
            sg.flip(x, 1),
            sg.roll(x, 1, 1),
            sg.tile(x, (2, 1)),
            sg.pad(x, ((1, 0), (0, 2)), constant_values=2.0),
            sg.pad(x, 1, "reflect"),
            sg.tril(x),
            sg.diagonal(x),
            sg.broadcast_to(x[0], (3, 4)),
        ),
        (X,),
    ),
    "slices": (lambda x: (x[1], x[:, 1:3], x[::-1, ::2], x[..., None, -1], x[-1, ::-2], x[2:1]), (X,)),
    "gathers": (
        lambda x: (
            x[[0, -1, 1]],
            sg.take(x, [[3, 0], [1, 1]], 1),
            sg.take(x, [5, -9], 1, mode="clip"),
            sg.take(x, sg.argmax(x, 1) - 4, 1),
            sg.take_along_axis(x, sg.expand_dims(sg.argmin(x, 1), 1), 1),
        ),
        (X,),
    ),
    "joined": (lambda x, y: (sg.concat([x, y], 1), sg.stack([x, y, x], 1), sg.split(x, 2, 1)[1]), (X, Y)),
    "products": (
        lambda x, y: (
            x @ y.T,
            x[0] @ y[0],
            x @ y[0],
            y[0] @ x.T,
            sg.einsum("ij,kj->ki", x, y),
            sg.outer(x[0], y[1]),
            sg.reshape(x, (3, 2, 2)) @ sg.reshape(y, (3, 2, 2)),
        ),
        (X, Y),
    ),
    "one hot": (lambda x: sg.one_hot(sg.argmax(x, 1), 4, axis=0) * 2.5, (X,)),
    "mlp": (mlp, (X, W1, W2)),
    "stopped target": (stopped_target, (X, W1, W2)),
    "conv net": (conv_net, (IMAGE, _normal(3, 3, 2, 4), _normal(2, 2, 4, 3))),
    "depthwise": (lambda x, f: sg.depthwise_conv2d(x, f, 2, "SAME"), (IMAGE, _normal(3, 3, 2, 2))),
    "conv1d": (lambda x, f: sg.max_pool(sg.conv(x, f, 2, "SAME", 1), 2, 1), (SEQUENCE, _normal(3, 3, 2))),
    "transposed conv": (lambda x, f: sg.conv2d_transpose(x, f, None, 2, "SAME"), (IMAGE, _normal(3, 3, 5, 2))),
    "second derivative": (sg.grad(lambda x: sg.sum(sg.grad(lambda x: sg.sum(sg.tanh(x) ** 3))(x) * x)), (X,)),
}


def mutants(data, count):
    """Yield truncated and altered copies, the same ones every time."""
    random = np.random.default_rng(len(data))
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(random.integers(1, 4)):
            place = int(random.integers(len(changed)))
            changed[place] = int(random.choice([0, 1, 127, 128, 255, changed[place] ^ (1 << int(random.integers(8)))]))
        if random.random() < 0.2:
            changed = changed[: int(random.integers(len(changed)))]
        if random.random() < 0.2:
            place, other = sorted(random.integers(len(changed) + 1, size=2))
            changed = changed[:place] + changed[other:]
        yield bytes(changed)
