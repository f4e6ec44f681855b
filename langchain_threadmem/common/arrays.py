"""Types of arrays of numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
"""Numbers, in most cases of vectors, in single precision."""
Vector = NDArray[np.float32]
"""The vector of one text."""
Keys = NDArray[np.int64]
"""Keys of nodes."""
