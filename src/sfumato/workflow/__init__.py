"""From a request to a release: recipes, the verbs `protect` and `verify`, and `publish`, the only maker of releases.

Kinds of content are listed in `__init__.pyi` and looked up by the name that certificates give.
"""

from __future__ import annotations

from sfumato.core.lazy import Kind, face, names_in_stub

NAMES = names_in_stub(__file__)
KINDS = {"content": Kind("sfumato.workflow.contents.base:Content", ("sfumato.workflow.contents",))}
__all__, __getattr__, __dir__ = face(__name__, NAMES)
