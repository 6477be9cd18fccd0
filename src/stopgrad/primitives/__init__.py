"""x"""
from stopgrad.primitives.arithmetic import *
