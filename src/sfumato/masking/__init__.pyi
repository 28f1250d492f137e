"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from typing import Any

from sfumato.core.lazy import Kind

from sfumato.masking.base import Change as Change
from sfumato.masking.base import Context as Context
from sfumato.masking.correction import Correction as Correction
from sfumato.masking.base import Kept as Kept
from sfumato.masking.base import Mask as Mask
from sfumato.data.masked import Masked as Masked
from sfumato.masking.microaggregation.base import Microaggregation as Microaggregation
from sfumato.masking.correction import recover_variance as recover_variance

NAMES: dict[str, str]
KINDS: dict[str, Kind]

def __getattr__(name: str) -> Any: ...  # the masks are listed with the names of the whole package
