"""The harness collects garbage before each measurement: of the tests themselves there is too much to walk over."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="package")
def what_is_there_already_is_left_alone() -> None:
    gc.freeze()
