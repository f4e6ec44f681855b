"""Fitting of the weights that are part of the package.

This module limits numeric libraries to one thread before any of them is imported: on a few busy cores several
threads are many times slower than one, and rounding depends on the number of threads. Rounding also depends
on the kernels that OpenBLAS chooses by the processor, so the kernels of the shipped weights are set where the
processor has their instructions: two fits of the same code and data then give equal files.
"""

import os
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

_processor = Path("/proc/cpuinfo")
if _processor.exists() and " avx512vl " in _processor.read_text():
    os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"
