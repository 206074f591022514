# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operator database, run on two devices."""

import pytest

pytest.register_assert_rewrite("opinfo.outcome")
