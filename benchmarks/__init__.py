"""Benchmarks of the package and of comparable packages.

This module limits numeric libraries to one thread before any of them is imported: on a few busy cores several
threads are many times slower than one, and rounding depends on the number of threads.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
