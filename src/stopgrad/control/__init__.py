"""Control flow: branches and loops that run at once, or become operations of a graph whose settings are programs."""

from stopgrad.control.branches import cond, switch
from stopgrad.control.loops import fori_loop, scan, while_loop

__all__ = ["cond", "fori_loop", "scan", "switch", "while_loop"]
