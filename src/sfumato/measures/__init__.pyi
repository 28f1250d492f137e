"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.core.lazy import Kind
from sfumato.measures import guarantees as guarantees
from sfumato.measures import risk as risk
from sfumato.measures import utility as utility

NAMES: dict[str, str]
KINDS: dict[str, Kind]

def places_by_key() -> dict[str, tuple[str, str]]: ...
