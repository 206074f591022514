# SPDX-License-Identifier: Apache-2.0
"""Tests of faults that this kind of software has had: a private flagosd with two devices."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["FLAGOS_ENDPOINT"] = "embedded"
os.environ["FLAGOS_DEVICES"] = "2"

import torch

torch.set_num_threads(1)
