"""Control: branches and loops, and functions mapped over examples.

Branches and loops run at once, or become operations of a graph whose settings are programs; `vmap` traces a function of
one example and runs its graph for many.
"""

from stopgrad.control.associative import associative_scan
from stopgrad.control.branches import cond, switch
from stopgrad.control.loops import fori_loop, scan, while_loop
from stopgrad.control.mapping import vmap
from stopgrad.control.rematerialise import checkpoint, remat

__all__ = ["associative_scan", "checkpoint", "cond", "fori_loop", "remat", "scan", "switch", "vmap", "while_loop"]
