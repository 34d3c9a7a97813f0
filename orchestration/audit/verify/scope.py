"""The scope of `verify`: all of the lake, what came since a day, or what is new or changed since the last proof.

Silver is cut by bronze batch. Gold is cut by group and by the ends of its windows: a reading changes windows that end up to the longest
window and the longest fill behind it, and where windows go on from those before, all windows behind it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import duckdb

from gold.windows.spec import Group
from orchestration.audit.verify.gold_windows import IN_ORDER
from orchestration.audit.verify.lake_snapshot import LakeSnapshot
from orchestration.audit.verify.store import NONE, batches
from orchestration.conf.model import Conf
from orchestration.conf.texts import digest_of, texts_of
from orchestration.storage.delta import instant, literal, max_in_log
from orchestration.storage.ops_tables import Proof
from orchestration.storage.table_changes import UNKNOWN, Ends, changes
from orchestration.utc import from_iso, to_micros

ALWAYS = 2**62
MINUTE = 60_000_000
MOST_SPANS = 200
"""Spans of one condition: more of them are put together, with what is between them."""
REGISTRY = ("silver.devices", "silver.references")
OF_SILVER = ("bronze.events", "silver.readings", "silver.quarantine", "silver.late", "silver.duplicates")
Span = tuple[int, int]
"""From one bronze batch to another; or behind one instant and up to another, in microseconds since 1970."""
EVER: Span = (-ALWAYS, ALWAYS)


@dataclass(frozen=True)
class Scope:
    """`batches`: bronze batches that are computed again. `gold`: by table, spans of the windows in its new and changed files; `closed`: by
    stream, of the windows that were closed since. Of what is not named all is compared.

    `has_carried`: whether flows and alerts are computed again, which carry on what was before.
    """

    batches: Sequence[Span]
    gold: Mapping[str, Sequence[Span]] = field(default_factory=dict)
    closed: Mapping[str, Span] = field(default_factory=dict)
    has_carried: bool = True

    @property
    def is_everything(self) -> bool:
        return EVER in self.batches

    @property
    def in_batches(self) -> str:
        """A condition on rows with a bronze batch."""
        return _any(f"bronze_batch between {first} and {last}" for first, last in self.batches)

    def windows(self, store: duckdb.DuckDBPyConnection, conf: Conf, group: Group, tables: Iterable[str]) -> list[Span]:
        """Return spans of the ends of windows that are compared. `tables`: those of gold with the group. `accepted` is in the store."""
        taken = f"list_contains(groups, {literal(group.name)}) and metric in {literal(list(group.metrics))}"
        spans = [(first, last + _reach(conf, group)) for first, last in _minutes(store, f"accepted where {taken}")]
        spans += [self.closed.get(group.stream, EVER), *(span for name in tables for span in self.gold.get(name, [EVER]))]
        spans = _few((first, last) for first, last in spans if first < last)
        return [(spans[0][0], ALWAYS)] if spans and _is_chained(conf, group) else spans


EVERYTHING = Scope([EVER])


def scope_since(snapshot: LakeSnapshot, since: date) -> Scope:
    """Return the scope of what was ingested on a day or later, and of windows that end later than it begins."""
    where = f"bronze_batch <= {snapshot.bronze_batch} and ingested_on >= date '{since.isoformat()}'"
    rows = batches(snapshot.tables["bronze.events"], snapshot.versions["bronze.events"], ["min(bronze_batch) as first"], where)
    first = rows.read_all()["first"][0].as_py()
    later = to_micros(from_iso(since.isoformat())), ALWAYS
    of_gold, closed = ({name: [later] for name in snapshot.tables}, dict.fromkeys(snapshot.closed_until, later))
    return Scope([] if first is None else [(first, ALWAYS)], of_gold, closed, has_carried=False)


def scope_after(proof: Proof, snapshot: LakeSnapshot, conf: Conf) -> Scope:
    """Return the scope of what is new or changed since a proof."""
    files = {name: _changes(snapshot, proof, name) for name in snapshot.versions}
    if UNKNOWN in files["bronze.events"] or any(_is_earlier(files.get(name, []), snapshot, proof) for name in REGISTRY):
        return EVERYTHING
    changed = [span for name in OF_SILVER for span in _spans(files.get(name, []), "bronze_batch")]
    new = proof.bronze_batch + 1, snapshot.bronze_batch
    of_batches = merged(span for span in (*changed, new) if span[0] <= min(span[1], snapshot.bronze_batch))
    if proof.conf != digest_of(texts_of(conf)):
        return Scope(of_batches)
    of_gold = {name: [(first - 1, last) for first, last in _spans(ends, "window_end")] for name, ends in files.items()}
    closed = {name: (to_micros(at), to_micros(snapshot.closed_until.get(name, at))) for name, at in proof.closed_until.items()}
    is_changed = bool(of_batches) or any(files.values()) or proof.closed_until != snapshot.closed_until
    return Scope(of_batches, of_gold, closed, is_changed)


def needed_before(
    store: duckdb.DuckDBPyConnection, scope: Scope, snapshot: LakeSnapshot, conf: Conf, windows: Mapping[str, Sequence[Span]]
) -> str:
    """Return a condition on rows of other batches, without which those of the scope cannot be judged.

    They are of the same minutes, or in windows that are compared. `windows`: their spans by group.
    """
    if scope.is_everything:
        return NONE
    groups = [conf.groups[name] for name, spans in windows.items() if spans]
    if any(_is_chained(conf, group) for group in groups) or (scope.has_carried and _is_carried(snapshot, conf)):
        return f"not {scope.in_batches}"
    of_windows = [(first - _reach(conf, group), last) for group in groups for first, last in windows[group.name]]
    spans = _few((first - 1, last) for first, last in (*of_windows, *_minutes(store, "accepted")))
    return f"not {scope.in_batches} and {within('event_time', spans, instant)}" if spans else NONE


def within(column: str, spans: Sequence[Span], written: Callable[[int], str] = str) -> str:
    """Write a condition in SQL. `written`: an instant as the SQL has it."""
    if any(first <= -ALWAYS and last >= ALWAYS for first, last in spans):
        return "true"
    ends = ((f"{column} > {written(first)}", f"{column} <= {written(last)}" if last < ALWAYS else "true") for first, last in spans)
    return _any(f"{behind} and {up_to}" for behind, up_to in ends)


def merged(spans: Iterable[Span], gap: int = 1) -> list[Span]:
    """Put spans together that touch each other, or have a gap of at most so much between them."""
    together = list[Span]()
    for first, last in sorted(spans):
        if together and first <= together[-1][1] + gap:
            together[-1] = together[-1][0], max(last, together[-1][1])
        else:
            together.append((first, last))
    return together


def _is_carried(snapshot: LakeSnapshot, conf: Conf) -> bool:
    """Whether something is computed from all readings: flows and alerts; anomalies where late rows have changed vectors."""
    vectors = [snapshot.generation.gold(stream, "vectors") for stream in conf.judged_streams]
    revisions = [max_in_log(snapshot.tables[name], "revision", snapshot.versions[name]) for name in vectors if name in snapshot.versions]
    return bool(conf.flows or conf.alerts) or any(revisions)


def _any(conditions: Iterable[str]) -> str:
    return f"({' or '.join(conditions) or 'false'})"


def _few(spans: Iterable[Span]) -> list[Span]:
    few, gap = merged(spans), MINUTE
    while len(few) > MOST_SPANS:
        few, gap = merged(few, gap), 4 * gap
    return few


def _minutes(store: duckdb.DuckDBPyConnection, rows: str) -> list[Span]:
    """Return a span for each minute in which rows were measured."""
    minutes = store.execute(f"select distinct epoch_us(date_trunc('minute', event_time)) from {rows}").fetchall()
    return [(minute, minute + MINUTE) for (minute,) in minutes]


def _reach(conf: Conf, group: Group) -> int:
    longest = max(conf.metrics[name].longest_seconds for name in group.metrics)
    return (longest + (group.vector.max_fill_seconds if group.vector else 0)) * 1_000_000


def _is_chained(conf: Conf, group: Group) -> bool:
    return any(conf.metrics[name].aggregation in IN_ORDER for name in group.metrics)


def _changes(snapshot: LakeSnapshot, proof: Proof, name: str) -> list[Ends]:
    if name not in proof.versions:
        return [UNKNOWN]
    return changes(snapshot.tables[name], proof.versions[name], snapshot.versions[name], proof.at)


def _spans(files: Sequence[Ends], column: str) -> list[Span]:
    return [ends.get(column, EVER) for ends in files]


def _is_earlier(files: Sequence[Ends], snapshot: LakeSnapshot, proof: Proof) -> bool:
    """Whether declarations came or went that count for events from before the proof."""
    if not files:
        return False
    newest = max_in_log(snapshot.tables["bronze.events"], "ingested_at", proof.versions["bronze.events"])
    return newest is not None and min(first for first, _ in _spans(files, "registered_at")) <= to_micros(newest)
