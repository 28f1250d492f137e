"""All rules together: importing this module is what makes them known."""

from __future__ import annotations

from sfumato.dp.sql import functions_logic, functions_numbers, functions_text
from sfumato.dp.sql.dispatch import Resolve, lower

__all__ = ["Resolve", "functions_logic", "functions_numbers", "functions_text", "lower"]
