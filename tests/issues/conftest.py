# SPDX-License-Identifier: Apache-2.0
"""Tests of faults that this kind of software has had: a private flagosd with two devices."""

import os
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["FLAGOS_ENDPOINT"] = "embedded"
os.environ["FLAGOS_DEVICES"] = "2"

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.register_assert_rewrite("agreement")

torch.set_num_threads(1)
