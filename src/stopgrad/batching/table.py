"""The batching rule of every operation that has a fast one, by family; elementwise operations have one in common.

An operation that is not here is applied to one example after the other (`stopgrad.batching.application.one_by_one`),
which is right for all.
"""

from __future__ import annotations

from stopgrad.batching import gates, indexing, products, shifting, windows
from stopgrad.batching.application import Rule
from stopgrad.batching.shifting import shifting as by

RULES: dict[str, Rule] = {
    # shapes and axes
    "reshape": by("shape", "shape"),
    "broadcast_to": shifting.broadcast_to,
    "permute_dims": by("order"),
    "flip": by("axes"),
    "roll": by("as it is", "axes"),
    "stack": by("axis"),
    "concat": by("axis", "as it is"),
    "pad": by("pairs", "pairs", "shape"),
    "tril": by("as it is"),
    "triu": by("as it is"),
    "diagonal": by("as it is", "axis", "axis", "shape"),
    "place_diagonal": by("as it is", "axis", "axis", "shape"),
    # reductions
    "sum": by("reduced", "as it is", "shape", "as it is"),
    "mean": by("reduced", "as it is", "shape", "as it is"),
    "prod": by("reduced", "as it is", "shape", "as it is"),
    "max": by("reduced", "as it is", "shape"),
    "min": by("reduced", "as it is", "shape"),
    "any": by("reduced", "as it is", "shape"),
    "all": by("reduced", "as it is", "shape"),
    "count_nonzero": by("reduced", "as it is", "shape"),
    "argmax": shifting.position_of_extreme,
    "argmin": shifting.position_of_extreme,
    "var": by("reduced", "as it is", "shape", "as it is"),
    "std": by("reduced", "as it is", "shape", "as it is"),
    "vector_norm": by("as it is", "reduced", "as it is", "shape"),
    "logsumexp": by("reduced", "as it is", "shape"),
    "allclose": shifting.compared,
    "array_equal": shifting.compared,
    # along an axis
    "softmax": by("axes", "as it is"),
    "log_softmax": by("axes"),
    "standardize": by("axes", "as it is"),
    "cumulative_sum": by("axis", "as it is", "as it is", "as it is"),
    "cumulative_prod": by("axis", "as it is", "as it is", "as it is"),
    "logcumsumexp": by("axis", "as it is"),
    "linear_recurrence": by("axis", "as it is"),
    "shift": by("axis", "as it is"),
    "argsort": by("axis", "as it is"),
    "reorder": by("axis"),
    "searchsorted": shifting.searchsorted,
    "largest_so_far": by("axis", "as it is"),
    "smallest_so_far": by("axis", "as it is"),
    # indexing
    "slice": by("basic index", "shape"),
    "place": by("basic indices", "shape"),
    "index": indexing.index,
    "scatter": indexing.scatter,
    "at_set": indexing.update,
    "at_add": indexing.update,
    "winners": indexing.winners,
    "take": indexing.take,
    "sum_segments": indexing.sum_segments,
    "take_along_axis": indexing.take_along_axis,
    "add_along_axis": indexing.add_along_axis,
    "one_hot": by("as it is", "axis"),
    # products
    "matmul": products.matmul,
    "contract": products.contract,
    # windows
    "conv": windows.conv,
    "conv_input": windows.conv,
    "conv_filters": windows.conv_filters,
    "max_pool": windows.folded,
    "gather_largest": windows.folded,
    "spread_largest": windows.folded,
    "avg_pool": windows.folded,
    "spread_mean": windows.folded,
    # linear algebra
    "cholesky": shifting.stacked_matrices,
    "eigh": shifting.stacked_matrices,
    "svd": shifting.stacked_matrices,
    "qr": shifting.stacked_matrices,
    "solve": shifting.stacked_matrices,
    "solve_triangular": shifting.stacked_matrices,
    "inv": shifting.stacked_matrices,
    "det": shifting.stacked_matrices,
    "slogdet": shifting.stacked_matrices,
    "cofactors": shifting.stacked_matrices,
    "cofactors_change": by(),
    "pinv": shifting.stacked_matrices,
    "matrix_rank": shifting.stacked_matrices,
    # gates
    "stop_gradient": gates.gate,
    "conditional_stop": gates.gate,
    "prevent_gradient": gates.gate,
    "clip_gradient_by_value": gates.clip_by_value,
    "clip_gradient_by_norm": gates.clip_by_norm,
    "stop_where": gates.entrywise_gate,
    "scale_gradient": gates.entrywise_gate,
    "straight_through": gates.entrywise_gate,
}
