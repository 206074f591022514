# SPDX-License-Identifier: Apache-2.0
"""Programs that people write, small: a private flagosd with two devices, nothing from the network."""

import os
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["FLAGOS_ENDPOINT"] = "embedded"
os.environ["FLAGOS_DEVICES"] = "2"
os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.register_assert_rewrite("agreement")

torch.set_num_threads(1)
