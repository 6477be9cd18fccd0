"""Linear algebra where it is hard to be right: singular matrices, equal eigenvalues, complex numbers, subscripts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import stopgrad as sg
from stopgrad import linalg
from stopgrad.check import check_gradients

SINGULAR = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]])


def cofactors(a):
    """Return the cofactors by minors."""
    n = len(a)
    minor = [[np.delete(np.delete(a, i, 0), j, 1) for j in range(n)] for i in range(n)]
    return np.array([[(-1) ** (i + j) * np.linalg.det(minor[i][j]) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize(
    "a", [SINGULAR, np.outer([1.0, 2.0, 4.0], [1.0, 0.5, 2.0]), np.zeros((3, 3)), np.eye(3)], ids=["2", "1", "0", "3"]
)
def test_determinant_of_every_rank(a):
    assert_allclose(sg.grad(linalg.det)(a).numpy(), cofactors(a), atol=1e-12)
    check_gradients(linalg.det, (a,), order=2)
    check_gradients(linalg.det, (np.stack([a, SINGULAR + np.eye(3)]),), order=2)


def test_third_derivative_of_the_determinant():
    third = sg.jacobian(sg.hessian(linalg.det))(np.eye(3) * 2).numpy()
    assert_allclose(third[0, 0, 1, 1, 2, 2], 1.0)
    assert_allclose(third[0, 1, 1, 2, 2, 0], 1.0)
    assert_allclose(third[0, 0, 1, 2, 2, 1], -1.0)


@pytest.mark.parametrize("function", [linalg.inv, lambda a: linalg.solve(a, np.ones(3))])
def test_singular_matrices_raise(function):
    with pytest.raises(sg.errors.LinearAlgebraError, match="Singular"):
        function(np.zeros((3, 3)))
    with pytest.raises(np.linalg.LinAlgError):
        function(np.zeros((3, 3)))
    with pytest.raises(sg.errors.LinearAlgebraError, match="cholesky"):
        linalg.cholesky(-np.eye(3))


def test_equal_eigenvalues():
    def trace_of_square(a):
        return sg.sum(linalg.eigvalsh(a) ** 2)

    a = np.diag([2.0, 2.0, 5.0])
    assert_allclose(sg.grad(trace_of_square)(a).numpy(), 2 * a, atol=1e-14)
    # The vector of the single eigenvalue has a derivative, those of the equal ones have none.
    single = sg.grad(lambda a: linalg.eigh(a)[1][0, 2] ** 2 + linalg.eigh(a)[1][1, 2] ** 2)(a).numpy()
    assert_allclose(single, np.zeros((3, 3)), atol=1e-14)
    one_of_equals = sg.grad(lambda a: linalg.eigh(a)[1][0, 0] * linalg.eigh(a)[1][1, 1] * 3 + linalg.eigh(a)[1][0, 1])(
        a
    )
    assert not np.isfinite(one_of_equals.numpy()).all()


def test_gradients_of_symmetric_decompositions_are_symmetric():
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    for function in (linalg.cholesky, linalg.eigvalsh):
        gradient = sg.grad(lambda a, f=function: sg.sum(f(a)))(a).numpy()
        assert_array_equal(gradient, gradient.T)


def test_singular_values_of_a_matrix_of_lower_rank():
    gradient = sg.grad(lambda a: sg.max(linalg.svdvals(a)))(np.outer([3.0, 4.0], [0.0, 1.0])).numpy()
    assert_allclose(gradient, [[0.0, 0.6], [0.0, 0.8]], atol=1e-15)


def test_one_output_of_several_is_unconnected_alone():
    a = np.array([[2.0, 0.5], [0.5, 1.0]])
    _, pullback = sg.vjp(lambda a: linalg.eigh(a)[0], a)
    assert_allclose(pullback(np.ones(2))[0].numpy(), np.eye(2), atol=1e-14)
    sign = sg.grad(lambda a: linalg.slogdet(a)[0], unconnected="none")(a)
    assert_array_equal(sign.numpy(), np.zeros((2, 2)))  # connected; constant almost everywhere


def complex_points(*shapes):
    generator = np.random.default_rng(5)
    return [generator.normal(size=shape) + 1j * generator.normal(size=shape) for shape in shapes]


def hermitian(a):
    return a @ sg.conj(sg.matrix_transpose(a)) + np.eye(3)


def rebuilt(a):
    values, vectors = linalg.eigh(hermitian(a))
    return (vectors * sg.log(values)) @ sg.conj(sg.matrix_transpose(vectors))


def rebuilt_from_singular(a):
    u, s, vh = linalg.svd(a)
    return (u * s**2) @ vh


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (linalg.solve, ((3, 3), (3, 2))),
        (linalg.inv, ((3, 3),)),
        (linalg.det, ((3, 3),)),
        (linalg.slogdet, ((3, 3),)),
        (linalg.pinv, ((3, 2),)),
        (lambda a: linalg.cholesky(hermitian(a)), ((3, 3),)),
        (rebuilt, ((3, 3),)),
        (rebuilt_from_singular, ((3, 2),)),
        (rebuilt_from_singular, ((2, 3),)),
        (linalg.qr, ((3, 2),)),
        (linalg.norm, ((3,),)),
        (sg.vdot, ((3,), (3,))),
        (lambda a, b: sg.einsum("ij,jk->ki", a, b), ((2, 3), (3, 2))),
        (lambda a: sg.var(a, axis=0), ((3, 2),)),
        (sg.std, ((4,),)),
    ],
)
def test_complex_matrices(function, shapes):
    """⟨u, J v⟩ = ⟨Jᵀ u, v⟩ without conjugates, and J v by differences."""
    points, directions = complex_points(*shapes), complex_points(*shapes)[::-1]
    directions = [
        np.roll(one, 1).reshape(point.shape) for one, point in zip(complex_points(*shapes), points, strict=True)
    ]
    outputs, pullback = sg.vjp(lambda *a: _listed(function(*a)), *points)
    _, pushed = sg.jvp(lambda *a: _listed(function(*a)), points, directions)
    step = 1e-6
    ahead = _listed(function(*(p + step * d for p, d in zip(points, directions, strict=True))))
    behind = _listed(function(*(p - step * d for p, d in zip(points, directions, strict=True))))
    for tangent, plus, minus in zip(pushed, ahead, behind, strict=True):
        assert_allclose(tangent.numpy(), (plus.numpy() - minus.numpy()) / (2 * step), rtol=1e-6, atol=1e-6)
    weights = [_weights_for(output.numpy()) for output in outputs]
    pulled = pullback(weights)
    left = sum(np.sum(w * t.numpy()).real for w, t in zip(weights, pushed, strict=True))
    right = sum(np.sum(g.numpy() * d).real for g, d in zip(pulled, directions, strict=True))
    assert_allclose(left, right, rtol=1e-10)


def _listed(result):
    return list(result) if isinstance(result, tuple) else [result]


def _weights_for(output):
    weights = np.exp(1j * np.arange(output.size)).reshape(output.shape)
    return weights if np.iscomplexobj(output) else weights.real


# einsum


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("iii->i", ((3, 3, 3),)),
        ("iijj->", ((2, 2, 3, 3),)),
        ("i...i->...", ((2, 3, 2),)),
        ("...ij->...ji", ((2, 3, 4),)),
        ("ij,j", ((2, 3), (1,))),
        ("i,i->", ((1,), (3,))),
        ("ij,ij->j", ((2, 3), (1, 3))),
        ("ab,bc,cd,de->ea", ((2, 3), (3, 4), (4, 2), (2, 3))),
        ("i,i,i,i->i", ((3,), (3,), (3,), (3,))),
        (" i j , j k -> i k ", ((2, 3), (3, 2))),
        ("ba,ca", ((2, 3), (4, 3))),
        ("i,j,k->", ((2,), (3,), (4,))),
        ("...,...->...", ((2, 1), (3,))),
        ("aab,bc->ac", ((2, 2, 3), (3, 4))),
    ],
)
def test_einsum_of_any_subscripts(subscripts, shapes):
    generator = np.random.default_rng(2)
    operands = [generator.normal(size=shape) for shape in shapes]
    assert_allclose(sg.einsum(subscripts, *operands).numpy(), np.einsum(subscripts, *operands), rtol=1e-12)
    check_gradients(lambda *operands: sg.einsum(subscripts, *operands), operands, order=2)


@pytest.mark.parametrize(
    ("subscripts", "error", "message"),
    [
        ("ij,jk->iz", "ArgumentError", "'z'"),
        ("ij,jk->ii", "ArgumentError", "once only"),
        ("ij", "ArgumentError", "is for 1 operands, got 2"),
        ("i$,jk", "ArgumentError", "may hold letters"),
        ("ijk,jk", "ShapeError", "does not fit an operand with 2 axes"),
        ("ii,jk", "ShapeError", "label 'i' in one operand differ"),
        ("ij,ik", "ShapeError", "sizes 2 and 3 under label 'i' differ"),
        ("...j,j...->j", "ArgumentError", "must have '...'"),
    ],
)
def test_einsum_says_what_is_wrong(subscripts, error, message):
    with pytest.raises(getattr(sg.errors, error), match=message.replace("$", r"\$").replace("...", r"\.\.\.")):
        sg.einsum(subscripts, np.ones((2, 3)), np.ones((3, 3)))


def test_einsum_multiplies_in_a_cheap_order():
    """(1000 × 2) (2 × 1000) (1000 × 1): from the right, no 1000 × 1000 matrix is kept."""
    a, b, c = np.ones((1000, 2)), np.ones((2, 1000)), np.ones((1000, 1))
    made = []
    sg.vjp(lambda a: made.append(sg.einsum("ij,jk,kl->il", a, b, c)) or made[0], a)
    kept = [one for one in made[0].node[3] if one is not None]
    assert sum(one.size for one in kept) == 2


def test_matmul_says_what_does_not_fit():
    with pytest.raises(sg.errors.ShapeError, match=r"matmul: shapes \(2, 3\) and \(2, 3\) do not fit"):
        sg.matmul(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(sg.errors.ShapeError, match="at least one axis"):
        sg.matmul(1.0, np.ones(3))
    with pytest.raises(sg.errors.ShapeError, match="right-hand sides"):
        linalg.solve(np.eye(3), np.ones(2))
    with pytest.raises(sg.errors.ShapeError, match="square"):
        linalg.inv(np.ones((2, 3)))


def test_the_cotangent_of_a_shared_matrix_is_summed_within_the_product():
    """x (8, 5, 3) @ w (3, 2): the gradient for w is one product, of the right value."""
    generator = np.random.default_rng(4)
    x, w, t = generator.normal(size=(8, 5, 3)), generator.normal(size=(3, 2)), generator.normal(size=(8, 5, 2))
    _, pullback = sg.vjp(sg.matmul, x, w)
    of_x, of_w = pullback(t)
    assert_allclose(of_x.numpy(), t @ w.T)
    assert_allclose(of_w.numpy(), np.einsum("abi,abj->ij", x, t))
