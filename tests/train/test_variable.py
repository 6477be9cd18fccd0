"""Variables: snapshots, one leaf for life, what may be assigned, and what `frozen` and `trainable` mean."""

from __future__ import annotations

import copy
import pickle
import threading

import array_api_strict
import numpy as np
import pytest
import torch

import stopgrad.primitives as p
from stopgrad.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ReadOnlyError, ShapeError
from stopgrad.core.tensor import Tensor
from stopgrad.gates import frozen, no_gradient, stop_gradient
from stopgrad.train import Variable, variable_gradients
from stopgrad.train.variable import reads
from stopgrad.transforms import GradientTape, grad, jvp


def test_reading_gives_a_snapshot_that_assigning_does_not_change() -> None:
    w = Variable([1.0, 2.0])
    tensor, view = w.value(), w.numpy()
    w.assign([3.0, 4.0])
    w.assign_add([1.0, 1.0])
    w.assign_sub([0.5, 0.5])
    assert tensor.tolist() == view.tolist() == [1.0, 2.0]
    assert w.tolist() == [3.5, 4.5]


def test_a_gradient_uses_the_values_that_were_read() -> None:
    w = Variable([1.0, 2.0])
    with GradientTape() as tape:
        y = p.sum(w * w)
        w.assign([100.0, 100.0])
    assert tape.gradient(y, w).tolist() == [2.0, 4.0]


def test_the_gradient_sums_over_all_readings_also_with_an_assignment_between() -> None:
    w = Variable(2.0)
    node = w.leaf_node
    with GradientTape() as tape:
        y = w * w
        w.assign(10.0)
        y = y + 3 * w
    assert float(tape.gradient(y, w)) == 2 * 2.0 + 3
    assert w.leaf_node is node


def test_assigning_is_not_differentiated() -> None:
    w = Variable(1.0)

    def f(x):
        w.assign(x * 3)
        return w * x

    assert float(grad(f)(2.0)) == 6.0


def test_the_value_is_a_copy_of_what_was_given() -> None:
    source, later = np.array([1.0, 2.0]), np.array([5.0, 6.0])
    w = Variable(source)
    source[:] = 0
    assert w.tolist() == [1.0, 2.0]
    w.assign(later)
    later[:] = 0
    assert w.tolist() == [5.0, 6.0]


@pytest.mark.parametrize("read", [lambda w: w.numpy(), np.asarray, lambda w: w.value().value, lambda w: w.raw])
def test_nobody_can_write_into_the_value(read) -> None:
    w = Variable([1.0, 2.0])
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            read(w)[0] = 9.0
        w.assign_add([0.0, 0.0])
    with pytest.raises(ReadOnlyError, match=r"w\.assign"):
        w[0] = 9.0


def test_it_computes_like_a_tensor() -> None:
    w, t = Variable([[1.0, 2.0], [3.0, 4.0]]), Tensor(np.array([[1.0, 2.0], [3.0, 4.0]]))
    x = np.array([[1.0, -1.0], [0.5, 2.0]])
    for f in (
        lambda v: v * x,
        lambda v: x * v,
        lambda v: 2 / v,
        lambda v: v - 1,
        lambda v: v @ x,
        lambda v: x @ v,
        lambda v: v**2,
        lambda v: -v,
        lambda v: v > 2,
        lambda v: v[0],
        lambda v: v.sum(),
        lambda v: v.reshape(4),
        lambda v: v.T,
        lambda v: np.exp(v),
        lambda v: p.exp(v),
        lambda v: v == t,
    ):
        result = f(w)
        assert isinstance(result, Tensor)
        np.testing.assert_array_equal(result.numpy(), f(t).numpy())
    assert (w.shape, w.ndim, w.size, len(w), str(w.dtype)) == ((2, 2), 2, 4, 2, "float64")
    assert float(Variable(2.5)) == Variable(2.5).item() == 2.5
    assert int(Variable(3)) == 3
    assert [10, 20, 30][Variable(1)] == 20
    assert not isinstance(w, Tensor)


def test_variables_are_keys_by_identity() -> None:
    a, b = Variable([1.0]), Variable([1.0])
    assert {a: "a", b: "b"}[a] == "a"
    assert len({a, b, a}) == 2


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_what_is_assigned_must_fit(method: str) -> None:
    w = Variable([1.0, 2.0], name="weights", dtype="float32")
    change = getattr(w, method)
    with pytest.raises(ShapeError, match=r"'weights'.*\(2,\).*\(3,\)"):
        change([1.0, 2.0, 3.0])
    with pytest.raises(ShapeError):
        change(1.0)
    with pytest.raises(DTypeError, match=r"'weights'.*float32.*float64"):
        change(np.array([1.0, 2.0]))
    with pytest.raises(DTypeError):
        change(Tensor(np.array([1.0, 2.0])))
    with pytest.raises(ArgumentTypeError):
        change("two")
    assert w.tolist() == [1.0, 2.0]
    assert change([1, 1]) is w
    assert w.dtype == np.float32


def test_lists_are_converted_only_without_loss_of_their_nature() -> None:
    counter = Variable([1, 2])
    with pytest.raises(DTypeError, match="int64"):
        counter.assign([1.5, 2.5])
    with pytest.raises(DTypeError, match="astype"):
        Variable([1.5], dtype=int)
    with pytest.raises(ArgumentError, match="not a dtype"):
        Variable([1.5], dtype="float33")
    assert counter.assign_add([1, 1]).tolist() == [2, 3]


def test_case_16_a_running_statistic_in_a_frozen_block_stands_still(rng: np.random.Generator) -> None:
    batch = rng.normal(size=(8, 3))
    mean = Variable(np.zeros(3), trainable=False)

    def normalised(x):
        mean.assign(0.9 * mean + 0.1 * p.mean(x, axis=0))
        mean.assign_add(np.zeros(3) + 1e-3)
        mean.assign_sub(np.zeros(3) + 1e-3)
        return x - mean

    with frozen(mean):
        normalised(batch)
        assert mean.numpy().tobytes() == np.zeros(3).tobytes()
    normalised(batch)
    assert (mean.numpy() != 0).all()


def test_in_a_frozen_block_only_the_own_gradient_ceases() -> None:
    w, x = Variable(2.0), Variable(5.0)

    def loss():
        with frozen(w):
            return w * x

    _, gradients = variable_gradients(loss, [w, x])
    assert gradients[w] is None
    assert float(gradients[x]) == 2.0


def test_in_a_no_gradient_block_it_is_a_constant() -> None:
    w = Variable(3.0)

    def loss():
        with no_gradient():
            c = w * w
        return w * c

    _, gradients = variable_gradients(loss)
    assert float(gradients[w]) == 9.0


def test_not_trainable_still_has_a_gradient() -> None:
    w = Variable(3.0, trainable=False)
    _, gradients = variable_gradients(lambda: w * w, w)
    assert float(gradients[w]) == 6.0


def test_integers_carry_no_derivative() -> None:
    n, w = Variable([1, 2]), Variable([1.0, 2.0])
    _, gradients = variable_gradients(lambda: p.sum(n * w))
    assert list(gradients) == [w]
    with pytest.raises(DTypeError, match="int64"):
        variable_gradients(lambda: p.sum(n * w), [n])


def test_forward_mode_reads_it_too() -> None:
    w = Variable(3.0)
    value, tangent = jvp(lambda x: x * w, (2.0,), (1.0,))
    assert (float(value), float(tangent)) == (6.0, 3.0)
    assert jvp(lambda x: x * x, (w,), (1.0,))[1].item() == 6.0


def test_second_derivatives() -> None:
    w = Variable(2.0)

    def penalty():
        _, gradients = variable_gradients(lambda: w * w * w)
        return gradients[w] * gradients[w]

    _, gradients = variable_gradients(penalty)
    assert float(gradients[w]) == 2 * (3 * 2.0**2) * (6 * 2.0)


def test_the_policy_for_unconnected_variables() -> None:
    w, b = Variable([3.0], name="w"), Variable([1.0], name="b")

    def loss():
        return p.sum(w * stop_gradient(b, name="gate"))

    assert variable_gradients(loss)[1][b] is None
    assert variable_gradients(loss, unconnected="zero")[1][b].tolist() == [0.0]
    with pytest.raises(
        ValueError, match=r"variable 'b' is unconnected.*stop_gradient 'gate' at .*test_variable\.py:\d+"
    ):
        variable_gradients(loss, unconnected="error")
    opened = variable_gradients(loss, stop={"gate": False})[1][b]
    assert opened.tolist() == [3.0]


@pytest.mark.parametrize(
    ("loss", "error", "text"),
    [
        (lambda w: None, ArgumentTypeError, "None"),
        (lambda w: (w, w), ArgumentTypeError, "tuple"),
        (lambda w: w * np.ones(2), ShapeError, r"\(2,\)"),
        (lambda w: p.astype(w, int), DTypeError, "int64"),
        (lambda w: w * 1j, DTypeError, "complex128"),
    ],
)
def test_what_is_not_a_loss_is_refused(loss, error: type[Exception], text: str) -> None:
    w = Variable(1.0)
    with pytest.raises(error, match=text):
        variable_gradients(lambda: loss(w))


def test_who_is_not_a_variable_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="float"):
        variable_gradients(lambda: 1.0, [1.0])
    with pytest.raises(ArgumentTypeError, match="lambda"):
        variable_gradients(3.0)


def test_a_variable_itself_can_be_the_loss() -> None:
    w = Variable(3.0)
    loss, gradients = variable_gradients(lambda: w)
    assert (float(loss), float(gradients[w])) == (3.0, 1.0)
    assert loss.node is None


def test_variables_are_given_as_any_tree() -> None:
    a, b = Variable(3.0), Variable(4.0)
    for variables in ({"a": a, "more": [b]}, (a, b), iter([a, b]), {"a": a, "b": b}.values(), [a, b, a]):
        assert list(variable_gradients(lambda: a * b, variables)[1]) == [a, b]


def test_reads_are_collected_in_order_and_by_thread() -> None:
    a, b, other = Variable(1.0), Variable(2.0), Variable(3.0)
    with reads() as outer:
        b.value()
        with reads() as inner:
            stop_gradient(a * b)
        thread = threading.Thread(target=other.value)
        thread.start()
        thread.join()
    assert list(inner.values()) == [a, b]
    assert list(outer.values()) == [b, a]


def test_names_and_how_it_shows() -> None:
    w = Variable([1.0, 2.0], name="w")
    assert repr(w) == "Variable('w', [1., 2.], shape=(2,), dtype=float64)"
    assert "trainable=False" in repr(Variable(1.0, trainable=False))
    names = {Variable(0.0).name for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("variable") for name in names)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
def test_a_copy_is_a_variable_of_its_own(duplicate) -> None:
    w = Variable([1.0, 2.0], name="w", trainable=False)
    twin = duplicate(w)
    assert (twin.name, twin.trainable, twin.tolist()) == ("w", False, [1.0, 2.0])
    w.assign([0.0, 0.0])
    assert twin.tolist() == [1.0, 2.0]
    _, gradients = variable_gradients(lambda: p.sum(w * twin), [w, twin])
    assert gradients[w].tolist() == [1.0, 2.0]
    assert gradients[twin].tolist() == [0.0, 0.0]


def test_a_copied_model_keeps_shared_variables_shared() -> None:
    w = Variable(1.0)
    model = {"a": w, "b": [w]}
    twin = copy.deepcopy(model)
    assert twin["a"] is twin["b"][0] is not w


@pytest.mark.parametrize("array", [array_api_strict.asarray([1.0, 2.0]), torch.tensor([1.0, 2.0], dtype=torch.float64)])
def test_it_holds_arrays_of_other_libraries(array) -> None:
    w = Variable(array)
    assert type(w.raw) is type(array)
    w.assign([3.0, 4.0])
    w.assign_add(np.array([1.0, 1.0]))
    assert type(w.raw) is type(array)
    assert w.tolist() == [4.0, 5.0]
    _, gradients = variable_gradients(lambda: p.sum(w * w))
    assert gradients[w].tolist() == [8.0, 10.0]
    with pytest.raises(ArgumentTypeError, match="NumPy"):
        Variable([1.0, 2.0]).assign(array)
