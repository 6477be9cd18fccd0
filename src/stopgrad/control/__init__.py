"""Control flow: branches and loops that run at once, or become operations of a graph whose settings are programs."""

from stopgrad.control.associative import associative_scan
from stopgrad.control.branches import cond, switch
from stopgrad.control.loops import fori_loop, scan, while_loop
from stopgrad.control.rematerialise import checkpoint, remat

__all__ = ["associative_scan", "checkpoint", "cond", "fori_loop", "remat", "scan", "switch", "while_loop"]
