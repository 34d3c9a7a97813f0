"""How far each flow of flows.yml and each alert of alerts.yml has come, as its folder tells: without Spark, without reading a row."""

from dataclasses import dataclass, field

from gold.slices import THE_BEGINNING
from orchestration.storage.bindings import REPAIR
from orchestration.storage.state_file import StateFile
from orchestration.storage.tables import LakeStore

FLOW = "gold.flows"
"""The job that writes them."""
FILE = "slice.json"


@dataclass(frozen=True)
class Reach:
    """Readings before `until` (microseconds since 1970) are counted; with them all that counts of bronze up to `bronze_batch`.

    `lateness_seconds`: of the policy then. Spark takes a shorter one over a batch later than the conf has it.
    """

    bronze_batch: int = -1
    until: int = THE_BEGINNING
    lateness_seconds: int = 0


@dataclass(frozen=True)
class Round:
    """`carried`: the digest of what the slice before left; empty for nothing. `up_to` None: no slice is begun.

    `began`: from where on it is what `plan` says, in microseconds since 1970.
    """

    number: int = 0
    after: Reach = field(default_factory=Reach)
    up_to: Reach | None = None
    plan: str = ""
    began: int = THE_BEGINNING
    carried: str = ""


def position_file(lake: LakeStore, name: str) -> StateFile[Round]:
    """The file of the flow of that name; it is not there where the flow has not begun."""
    return StateFile(lake.checkpoint(FLOW) / name / FILE, Round, REPAIR)
