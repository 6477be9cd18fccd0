"""x"""
from stopgrad.primitives.arithmetic import *
from stopgrad.primitives.shape import *
from stopgrad.primitives.axes import *
from stopgrad.primitives.indexing import *
from stopgrad.primitives.counting import all, any, argmax, argmin, count_nonzero
from stopgrad.primitives.normalise import log_softmax, logsumexp, softmax, standardize
from stopgrad.primitives.products import matmul
from stopgrad.primitives.reductions import amax, amin, max, mean, min, prod, sum
from stopgrad.primitives.scans import cumulative_prod, cumulative_sum, logcumsumexp
from stopgrad.primitives.statistics import average, nanmax, nanmean, nanmin, nansum, ptp, std, var
