"""x"""
from stopgrad.primitives.arithmetic import *
from stopgrad.primitives.shape import *
from stopgrad.primitives.axes import *
from stopgrad.primitives.indexing import *
