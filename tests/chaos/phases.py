"""The phases of a run at which it is killed, as a table. A phase is one line.

Where Python sees the phase, a crash point of the product ends it. What happens inside Spark and Delta is told by the files that appear;
whether the kill came in time is then looked up on the disk.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestration.crash import Point
from tests.chaos.inotify import Event
from tests.s3_proxy import Fault

UUID = r"[0-9a-f-]{36}"
DRAFT = re.compile(rf"^\.(.+?)\.{UUID}(\.TID\d+)?\.tmp$")
WHOLE_PARQUET = b"PAR1"


@dataclass(frozen=True)
class Appears:
    """A file: its path matches, and `event` happens to it. `is_hit` looks at what the kill left.

    In a store the object `key` appears, and is there at the kill or not yet.
    """

    pattern: str
    event: Event
    is_hit: Callable[[Path], bool]
    key: str
    is_there: bool

    def in_store(self, passing: int) -> Fault:
        """Return what keeps the run in the phase until it is killed."""
        return Fault("stall" if self.is_there else "hold", ["PUT", "COPY"], self.key, every=passing, most=1)


class AnyMoment:
    """The clock decides."""


@dataclass(frozen=True)
class Phase:
    """`passings`: how often it comes in a run over FILES, at least. `is_second`: not in the first run.

    `sample`: what of the command runs where `make test-processes` has the phase too. `has_sink`: the plant has one, which refuses rows.
    """

    name: str
    at: Point | Appears | AnyMoment
    passings: int = 1
    sample: tuple[str, ...] | None = None
    command: tuple[str, ...] = ("run", "--once")
    is_second: bool = False
    has_sink: bool = False


def is_draft_only(file: Path) -> bool:
    """It has the name under which it is written, and not the name that counts."""
    name = DRAFT.match(file.name)
    assert name is not None, file
    return file.exists() and not file.with_name(name[1]).exists()


def is_batch_open(offsets: Path) -> bool:
    """The micro-batch is begun and not done."""
    return offsets.exists() and not (offsets.parent.parent / "commits" / offsets.name).exists()


def is_half(file: Path) -> bool:
    """A data file without its end."""
    return file.exists() and not file.read_bytes().endswith(WHOLE_PARQUET)


def is_not_in_log(file: Path) -> bool:
    """A whole data file that no commit names."""
    (table,) = (folder for folder in file.parents if (folder / "_delta_log").exists())
    known = "".join(commit.read_text() for commit in (table / "_delta_log").glob("*.json"))
    return not is_half(file) and file.name not in known


def is_without_checksum(file: Path) -> bool:
    """Hadoop gives a file its name first, and then its checksum the name that goes with it."""
    return file.exists() and not file.with_name(f".{file.name}.crc").exists()


FILES = 11
"""delta-rs writes a checkpoint at every tenth commit."""
OFFSETS_DRAFT = Appears(rf"/offsets/\.\d+\.{UUID}\.tmp$", Event.MADE, is_draft_only, r"/offsets/\d+$", is_there=False)
OFFSETS = Appears(r"/offsets/\d+$", Event.RENAMED, is_batch_open, r"/offsets/\d+$", is_there=True)
DATA_BEGUN = Appears(r"/part-[^/]+\.parquet$", Event.MADE, is_half, r"/part-[^/]+\.parquet$", is_there=False)
DATA_WRITTEN = Appears(r"/part-[^/]+\.parquet$", Event.CLOSED, is_not_in_log, r"/part-[^/]+\.parquet$", is_there=True)
STATE_DRAFT = Appears(rf"/state/.+/\.\d+\.delta\.{UUID}\.TID\d+\.tmp$", Event.MADE, is_draft_only, r"/state/.+/\d+\.delta$", is_there=False)
STATE = Appears(r"/state/.+/\d+\.delta$", Event.RENAMED, is_without_checksum, r"/state/.+/\d+\.delta$", is_there=True)
COMMIT = Appears(r"/commits/\d+$", Event.RENAMED, is_without_checksum, r"/commits/\d+$", is_there=True)

BRONZE, SILVER, GOLD = (("--layer", layer) for layer in ("bronze", "silver", "gold"))
LEDGER = ("--flow", "silver.ledger")
REPLAY = ("replay", "--yes")
MAINTAIN = ("maintain",)

PHASES = (
    Phase("bronze written", Point.EVENTS_WRITTEN, FILES, sample=BRONZE),
    Phase("before offsets are logged", OFFSETS_DRAFT, 20),
    Phase("during a data file", DATA_BEGUN, FILES),
    Phase("data written, log not", DATA_WRITTEN, FILES, sample=()),
    Phase("any table: files written, no commit names them", Point.COMMIT_DUE, 2 * FILES),
    Phase("offsets logged, nothing else", OFFSETS, 20),
    Phase("during a state upload", STATE_DRAFT, 20),
    Phase("state stored, its checksum not", STATE, 20),
    Phase("readings written, batch not committed", Point.READINGS_WRITTEN, FILES, sample=SILVER),
    Phase("batch committed, its checksum not", COMMIT, 20),
    Phase("ledger: range noted, nothing written", Point.LEDGER_BEGUN),
    Phase("ledger: a table written, others not", Point.LEDGER_TABLE_WRITTEN, 3, sample=LEDGER),
    Phase("gold: first of two tables written", Point.AGGREGATES_WRITTEN, 2, sample=GOLD),
    Phase("gold: both written, batch not committed", Point.WINDOWS_WRITTEN, 2),
    Phase("amendments: late rows of a group written", Point.LATE_FOR_GROUP_WRITTEN, is_second=True),
    Phase("amendments: first of two tables written", Point.AMENDMENT_HALF_WRITTEN, 2),
    Phase("amendments: written, round not ended", Point.AMENDMENT_WRITTEN),
    Phase("flows of conf: slice chosen, nothing written", Point.FLOW_BEGUN, 2),
    Phase("flows of conf: rows written, state not", Point.FLOW_WRITTEN, 2),
    Phase("all done, snapshot row not written", Point.SNAPSHOT_DUE),
    Phase("sink: delivered, dead rows not noted", Point.BATCH_DELIVERED, has_sink=True),
    Phase("sink: dead rows noted, batch not marked", Point.DEAD_ROWS_NOTED, has_sink=True),
    Phase("sink: dead rows are over, batch not marked", Point.DEAD_ROWS_OVER, has_sink=True, is_second=True),
    Phase("while running continuously", Point.AGGREGATES_WRITTEN, command=("run",)),
    Phase("at any moment", AnyMoment()),
    Phase("OPTIMIZE: one table compacted", Point.COMPACTED, 3, command=MAINTAIN, is_second=True),
    Phase("VACUUM: one file removed", Point.FILE_REMOVED, 2, command=MAINTAIN, is_second=True),
    Phase("replay: silver rebuilt, gold not", Point.SILVER_REBUILT, command=REPLAY, is_second=True),
    Phase("replay: built, not proposed", Point.GENERATION_BUILT, command=REPLAY, is_second=True),
    Phase("swap: proposed, not yet serving", Point.GENERATION_PROPOSED, command=REPLAY, is_second=True),
    Phase("swap: serving, snapshot row not written", Point.SWAPPED, command=REPLAY, is_second=True),
)
