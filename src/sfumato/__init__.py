"""sfumato: publish, query, collect and compute on data about people without giving anyone away.

>>> import sfumato as sf
>>> people = sf.read(sf.data.sample_table(1000), schema=sf.data.sample_schema())
>>> release = sf.protect(people, [sf.KAnonymity(5)], ledger=None)
>>> release.certificate.measured["KAnonymity"] >= 5
True

The names load on first use; they are listed in `__init__.pyi`, and `sf.find` looks them up by kind.
"""

from __future__ import annotations

from sfumato.core.lazy import face, names_in_stub
from sfumato.core.memory_limit import fit_arrow

__version__ = "0.1.0"

fit_arrow()

NAMES = names_in_stub(__file__)
__all__, __getattr__, __dir__ = face(__name__, NAMES)
