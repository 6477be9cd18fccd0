"""Checking derivatives: ours, and those of rules users define, against differences, beside gates too."""

from stopgrad.check.gradients import check_gradients

__all__ = ["check_gradients"]
