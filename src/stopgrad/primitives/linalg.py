"""Linear algebra, under the names of `numpy.linalg` and of the array API standard's extension for it."""

from stopgrad.primitives.axes import matrix_transpose
from stopgrad.primitives.contraction import outer, tensordot
from stopgrad.primitives.decompositions import cholesky, eigh, eigvalsh, qr, svd, svdvals
from stopgrad.primitives.determinants import det, logdet, slogdet
from stopgrad.primitives.diagonals import diagonal, trace
from stopgrad.primitives.einsum import multi_dot, vecdot
from stopgrad.primitives.linear_algebra import inv, pinv, solve, solve_triangular
from stopgrad.primitives.matrix_functions import cond, lstsq, matrix_power, matrix_rank
from stopgrad.primitives.norms import matrix_norm, norm, vector_norm
from stopgrad.primitives.products import cross, matmul

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "logdet",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
