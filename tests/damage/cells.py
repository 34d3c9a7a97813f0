"""The damage matrix: which file of a lake is damaged, and in which way."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

WAYS = ("empty", "half", "one byte less", "a bit flipped", "deleted", "an older one")


@dataclass(frozen=True)
class Part:
    """A kind of file, numbered or not; `files` are below the lake, oldest first, the last is damaged. `digit`: of which a flip stays
    valid, as the group of a pattern; else the bit in the middle is flipped.
    """

    files: str
    digit: bytes | None = None

    def of(self, lake: Path) -> list[Path]:
        """Oldest first."""
        found = [file for file in lake.glob(self.files) if not file.name.startswith(".")]
        return sorted(found, key=lambda file: (int(re.match(r"\d*", file.name)[0] or -1), file.stat().st_mtime_ns))  # type: ignore[index]


OF_A_LOG = rb'numRecords\\":\d*(\d)'
PARTS: Mapping[str, Part] = {
    "metadata of a checkpoint": Part("checkpoints/*/metadata", rb'"id":"[^"]*?(\d)'),
    "`tidemark.json` of a checkpoint": Part("checkpoints/*/tidemark.json", rb'shuffle_partitions":(\d)'),
    "offsets": Part("checkpoints/silver.readings/offsets/*", rb'reservoirVersion":(\d)'),
    "commits": Part("checkpoints/silver.readings/commits/*", rb'nextBatchWatermarkMs":\d+(\d)\d{5}'),
    "state: changelog, heap": Part("checkpoints/silver.readings/state/0/0/*.delta"),
    "state: snapshot, heap": Part("checkpoints/silver.readings/state/0/0/*.snapshot"),
    "state: schema": Part("checkpoints/*/state/0/0/_metadata/schema"),
    "state: snapshot, RocksDB": Part("checkpoints/silver.readings/state/0/0/*.zip"),
    "state: SST file, RocksDB": Part("checkpoints/silver.readings/state/0/0/SSTs/*.sst"),
    "amendments": Part("checkpoints/gold.kitchen/amendments.json", rb'"number":(\d)'),
    "slice of a flow": Part("checkpoints/gold.flows/warm/slice.json", rb'"number":(\d)'),
    "state of a flow": Part("checkpoints/gold.flows/warm/*.arrow"),
    "Delta log, bronze": Part("bronze/events/_delta_log/*.json", OF_A_LOG),
    "Delta log, silver": Part("silver/readings/_delta_log/*[0-9].json", OF_A_LOG),
    "Delta log, gold": Part("gold/aggregates/_delta_log/*.json", OF_A_LOG),
    "Delta log, snapshots": Part("ops/snapshots/_delta_log/*.json", OF_A_LOG),
    "Delta log, generations": Part("ops/generations/_delta_log/*.json", rb'"timestamp":\d+(\d)'),
    "Delta log, dead rows": Part("ops/dead_rows/_delta_log/*.json", OF_A_LOG),
    "Delta log, objects": Part("ops/objects/_delta_log/*.json", OF_A_LOG),
    "Delta checksum of a version": Part("bronze/events/_delta_log/*.crc", rb'"numFiles": ?(\d)'),
    "Delta checkpoint": Part("silver/readings/_delta_log/*.checkpoint.parquet"),
    "`_last_checkpoint`": Part("silver/readings/_delta_log/_last_checkpoint", rb'"version":(\d)'),
    "data file, bronze": Part("bronze/events/*/*.parquet", rb"T00:\d(\d):"),
    "data file, silver": Part("silver/readings/*.parquet"),
    "data file, gold": Part("gold/aggregates/*.parquet"),
    "data file, snapshots": Part("ops/snapshots/*.parquet"),
    "data file, dead rows": Part("ops/dead_rows/*.parquet"),
    "data file, objects": Part("ops/objects/*.parquet"),
    "copy for workers": Part("mapped/*.arrow"),
    "seal of a checkpoint": Part("checkpoints/*.seal", rb'"offsets/0": \[(\d)'),
    "seal of a table": Part("silver/*.seal", rb"\[(\d)"),
}


def inflict(part: str, way: str, lake: Path, earlier: Path) -> Path:
    """Damage a file, and take away what Hadoop's file system would know it by: whoever copies or restores a file leaves that out.

    An older one is the file itself as it was `earlier`, or the one before it.
    """
    *before, file = PARTS[part].of(lake)
    content, then = file.read_bytes(), earlier / file.relative_to(lake)
    older = [then] if then.exists() and then.read_bytes() != content else before[-1:]
    ways: Mapping[str, Callable[[], bytes]] = {
        "empty": lambda: b"",
        "half": lambda: content[: len(content) // 2],
        "one byte less": lambda: content[:-1],
        "a bit flipped": lambda: _flipped(content, PARTS[part].digit),
        "an older one": lambda: older[0].read_bytes(),  # noqa: PLW0108 - there may be none
    }
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    if way == "deleted":
        file.unlink()
    else:
        file.write_bytes(ways[way]())
    return file


def _flipped(content: bytes, digit: bytes | None) -> bytes:
    """One to zero, two to three: digits stay digits."""
    found = re.search(digit, content, re.DOTALL) if digit else None
    assert found or digit is None, content[:500]
    at = found.start(1) if found else len(content) // 2
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
