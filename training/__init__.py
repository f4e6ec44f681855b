"""Fitting of the weights that the package ships.

Numeric libraries get one thread here, before any of them is imported: several threads on a few busy cores are
many times slower than one, and each number of threads rounds in its own way.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
