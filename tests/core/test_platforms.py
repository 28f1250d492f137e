"""Systems that lack what Linux has: everything is imported and a table is protected without it, or refused in words.

A process of its own takes away what Windows and macOS lack, before anything is imported. That is no test on those systems.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato

WINDOWS = """
import os, signal, sys
import shutil, subprocess, tempfile, uuid, multiprocessing, concurrent.futures, asyncio  # Python's own know their system
import numpy, pyarrow, duckdb, sklearn.tree, matplotlib.figure, scipy.optimize, joblib  # and so do other libraries

LACKING = {
    os: "O_NOFOLLOW O_DIRECTORY O_NONBLOCK O_CLOEXEC geteuid getegid getuid getgid fchmod chown fork killpg register_at_fork "
        "memfd_create waitid sysconf sched_getaffinity statvfs getpgid setsid",
    signal: "SIGHUP SIGALRM SIGKILL SIGXCPU SIGPIPE setitimer alarm",
}
ABSENT = "fcntl resource pwd grp termios pandas polars ot psycopg pyspark IPython".split()

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for module, names in LACKING.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
for name in list(sys.modules):
    if name.partition(".")[0] in ABSENT:
        del sys.modules[name]
sys.meta_path.insert(0, Absent())
shutil._use_fd_functions = False
os.name = "another"
"""

DONE = """
import importlib, json, pkgutil
import sfumato as sf
failed = {}
for module in pkgutil.walk_packages(sf.__path__, "sfumato."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except Exception as error:
            failed[module.name] = f"{type(error).__name__}: {error}"
people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
release = sf.protect(people, [sf.KAnonymity(3)], ledger="ledger.db")
release.save("out")
sf.mask(people, "Mdav(k=3)", ledger="ledger.db").save("masked", format="csv")
compared = sf.compare(people, ["Mdav(k=3)", "Mdav(k=5)", "Mdav(k=7)", "Mdav(k=9)"], runs=1, cache="cache", workers=2)
answer = sf.Session(people, budget=sf.PureDP(1)).sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
try:
    verified = sf.verify("out").accepted
except sf.errors.Unsupported as error:
    verified = str(error)
print(json.dumps({"failed": failed, "rows": len(release), "compared": len(compared.points), "verified": verified}))
"""


@pytest.mark.slow
def test_a_system_without_what_linux_has_imports_protects_and_says_what_it_cannot(tmp_path: Path) -> None:
    environment = {**os.environ, "SFUMATO_KEY": str(tmp_path / "owner.key"), "PYTHONPATH": str(Path(sfumato.__file__).parents[1])}
    environment["SFUMATO_KERNELS"] = "numpy"  # compiled kernels look at the system that this one pretends to be
    environment["TMPDIR"] = str(tmp_path)  # elsewhere processes with locks would sweep away what this one cannot lock
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WINDOWS + DONE], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert process.returncode == 0, process.stderr[-3000:]
    told = json.loads(process.stdout)
    assert told["failed"] == {} and told["rows"] > 0 and told["compared"] == 4
    assert told["verified"] == (
        "reading a folder of somebody else without links needs abilities of Linux or macOS that this system does not have; "
        "do it there"
    )
    assert (tmp_path / "out" / "public" / "certificate.json").is_file()
