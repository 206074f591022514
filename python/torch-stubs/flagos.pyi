# SPDX-License-Identifier: Apache-2.0
# torch.flagos for type checkers, which know it once a program says `import torch.flagos`.
from flagos.backend import *
