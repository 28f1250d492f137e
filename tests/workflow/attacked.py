"""Results of attacks as the command prints them."""

from __future__ import annotations

from typing import Any

import sfumato as sf
from sfumato.workflow.attacking.releases import stated


def attack_folder(release: Any, **options: Any) -> list[dict[str, Any]]:
    """What `sf.attack` finds, as plain data."""
    return [stated(result) for result in sf.attack(release, **options)]
