"""Kinds of content that leave the house: the one list, read by people, type checkers and the registry."""

from sfumato.core.lazy import Kind
from sfumato.workflow.contents.baskets import Baskets as Baskets
from sfumato.workflow.contents.cube import Cube as Cube
from sfumato.workflow.contents.private_result import PrivateResult as PrivateResult
from sfumato.workflow.contents.rows import Rows as Rows
from sfumato.workflow.contents.stored_rows import StoredRows as StoredRows
from sfumato.workflow.comparing.hiding import compare_hiding as compare_hiding

KINDS: dict[str, Kind]
