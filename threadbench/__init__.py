"""threadbench: a benchmark of thread selection in chats about several topics.

`README.md` in this folder describes the data, the protocol and the results. This module limits numeric
libraries to one thread before any of them is imported, so that figures can be reproduced.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
