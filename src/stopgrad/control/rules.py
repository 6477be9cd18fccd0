"""All batching rules: those of plain operations, and those of branches and loops, whose bodies are run by all again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stopgrad.batching.application import Application, Rule, Rules
from stopgrad.batching.table import RULES
from stopgrad.control.batched import checkpoint_rule, switch_rule
from stopgrad.control.batched_loops import scan_rule, while_rule


def _with_all(rule: Callable[[Application, Rules], Any]) -> Rule:
    return lambda application: rule(application, ALL_RULES)


ALL_RULES: Rules = {
    **RULES,
    "switch": _with_all(switch_rule),
    "checkpoint": _with_all(checkpoint_rule),
    "scan": _with_all(scan_rule),
    "while": _with_all(while_rule),
}
