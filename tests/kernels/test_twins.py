"""A kernel gives the same numbers compiled, as NumPy and as plain Python; it never compiles in a user's command."""

from __future__ import annotations

import copy
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato
from sfumato.kernels import compiled
from tests.conftest import unavailable
from tests.examples import examples
from tests.kernels.inputs import INPUTS, comparable

KERNELS = {kernel.__name__: kernel for kernel in compiled.every_kernel()}


@pytest.fixture(scope="module")
def machine_code() -> dict[str, Any]:
    """Every kernel from the compiler's cache, where `sfumato warm` has put it."""
    if not compiled.available():
        unavailable("compiled kernels: run `sfumato warm` first")
    return {name: kernel.compile() for name, kernel in KERNELS.items()}


def test_every_kernel_is_compared() -> None:
    assert set(INPUTS) == set(KERNELS)


@pytest.mark.parametrize("name", sorted(KERNELS))
@settings(max_examples=examples(15))
@given(data=st.data())
def test_compiled_numpy_and_plain_python_give_the_same_numbers(
    machine_code: dict[str, Any], name: str, data: st.DataObject
) -> None:
    arguments = data.draw(INPUTS[name]())
    with np.errstate(over="ignore"):  # hashing wraps around on purpose
        expected = comparable(name, KERNELS[name].plain(*copy.deepcopy(arguments)))  # some change their arguments
    for version in (machine_code[name], KERNELS[name].twin):
        found = comparable(name, version(*copy.deepcopy(arguments)))
        for left, right in zip(found, expected, strict=True):
            assert left == (pytest.approx(right, rel=1e-12) if np.asarray(right).dtype.kind == "f" else right)


@pytest.mark.parametrize("name", sorted(name for name, kernel in KERNELS.items() if len(kernel.signatures) > 1))
@settings(max_examples=examples(25))
@given(data=st.data())
def test_counts_in_half_the_memory_give_the_same_numbers(machine_code: dict[str, Any], name: str, data: st.DataObject) -> None:
    arguments = data.draw(INPUTS[name]())
    kinds = re.findall(r"(\w+)(?:\[[:,\d]*\])?", KERNELS[name].signature[KERNELS[name].signature.rindex("(") + 1 : -1])
    counted = [kind == "count" for kind in kinds]
    assert len(counted) == len(arguments) and any(counted)
    bounded = [np.minimum(array, 50_000) if small else array for small, array in zip(counted, arguments, strict=True)]
    smaller = [array.astype(np.int32) if small else array for small, array in zip(counted, bounded, strict=True)]
    for version in (machine_code[name], KERNELS[name].twin):
        expected = comparable(name, version(*copy.deepcopy(bounded)))
        for left, right in zip(comparable(name, version(*copy.deepcopy(smaller))), expected, strict=True):
            assert left == (pytest.approx(right, rel=1e-12) if np.asarray(right).dtype.kind == "f" else right)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_signature_is_fixed(machine_code: dict[str, Any], name: str) -> None:
    """One version for each signature; other types are refused instead of compiled."""
    function = machine_code[name]
    assert len(function.signatures) == len(KERNELS[name].signatures) <= 2
    with pytest.raises(TypeError):
        function("text")
    assert len(function.signatures) == len(KERNELS[name].signatures)


SEARCH = """
import sys
import pyarrow as pa
import sfumato as sf
from sfumato.kernels import compiled
table = pa.table({"zip": ["1", "1", "2", "2", "3"], "disease": ["a", "b", "a", "b", "a"]})
people = sf.read(table, schema=sf.Schema.of(quasi=["zip"], sensitive=["disease"]))
outcome = sf.Lattice(0.5).run(people, [sf.KAnonymity(2), sf.EntropyLDiversity(2, "disease")])
print(compiled.available(), "numba" in sys.modules, outcome.result.suppressed, outcome.details["loss"])
"""


def _run(environment: dict[str, str]) -> list[str]:
    answer = subprocess.run(
        [sys.executable, "-c", SEARCH], capture_output=True, text=True, timeout=120, check=True, env={**os.environ, **environment}
    )
    return answer.stdout.split()


def test_a_process_that_asks_for_numpy_does_not_import_the_compiler() -> None:
    assert _run({"SFUMATO_KERNELS": "numpy"}) == ["False", "False", "1", "0.2"]


def test_a_package_that_was_never_warmed_does_not_import_the_compiler(tmp_path: Path) -> None:
    source = Path(sfumato.__file__).parent
    shutil.copytree(source, tmp_path / "sfumato", ignore=shutil.ignore_patterns("__pycache__"))
    answer = _run({"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"})
    assert answer == ["False", "False", "1", "0.2"]
