"""The conditional headers that a container operation accepts, for each `ConditionUse`.

One table, for the declarations and for the guard. Source: conditions.md, section 2.
"""

from __future__ import annotations

from typing import Final

from strongroom.semantics.core.conditions import ContainerConditions
from strongroom.services.core.calls import ConditionUse

CONTAINER_CONDITIONS: Final = {
    ConditionUse.NONE: ContainerConditions.NONE,
    ConditionUse.REFUSED: ContainerConditions.NONE,
    ConditionUse.DATES: ContainerConditions.DATES,
    ConditionUse.MODIFIED_SINCE: ContainerConditions.MODIFIED_SINCE,
}
