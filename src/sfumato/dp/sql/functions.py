"""All rules together: importing this module is what makes them known."""

from __future__ import annotations

from sfumato.dp.sql import functions_logic, functions_numbers, functions_text
from sfumato.dp.sql.dispatch import Resolve, is_unknown, lower

__all__ = ["Resolve", "functions_logic", "functions_numbers", "functions_text", "is_unknown", "lower"]
