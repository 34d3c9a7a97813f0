"""The conf that is written now, beside those that the lake was run with: what changes, what the lake cannot go on with, what is taken up.

Silver reads a bronze batch with the conf that ran when the batch came; see kept_confs.py.
"""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from orchestration.conf.changes import Change, Consequence, SettingPath, changes, grouped, line_of
from orchestration.conf.load import accepted_files, load, read_conf
from orchestration.conf.model import Conf
from orchestration.conf.place import place_of
from orchestration.conf.texts import digest_of, texts_of
from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.storage.bindings import HeldBack, changed_plan, knows_group, plan_of_flow
from orchestration.storage.kept_confs import (
    READINGS,
    Era,
    KeptConf,
    binding_of,
    conf_of,
    eras,
    keep,
    kept_conf,
    note,
    retries,
    running_conf,
)
from orchestration.storage.positions import step_file
from orchestration.storage.source_offsets import next_bronze_batch, source_offsets
from orchestration.storage.tables import LakeStore


def files_in(lake: Location) -> Path:
    """Return the folder with the files of the conf that `up` has taken up, secrets and all: its parts start again with that."""
    return (lake / "up" / "conf").local


def keep_files(conf: Conf) -> None:
    """Copy the files of a conf that `up` takes up, unless they say something else by now: then it reads them again."""
    kept = files_in(conf.lake)
    draft = kept.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700, parents=True)
    for file in conf.folder.glob("*.yml"):
        shutil.copyfile(file, draft / file.name)
    with suppress(ConfError):
        if texts_of(read_conf(conf.folder, draft)) == texts_of(conf):
            shutil.rmtree(kept, ignore_errors=True)
            draft.rename(kept)


def conf_to_run(folder: Path) -> Conf:
    """Return the conf in a folder; in a part of `up` the one that ran last, where the lake cannot go on with it after a rollback."""
    conf = load(folder)
    return running_conf(conf) if accepted_files() and held_back(LakeStore(conf)) else conf


def conf_or_last(folder: Path) -> tuple[Conf, str]:
    """Return the conf in a folder; where it has mistakes, the one that `up` has taken up, and the mistakes."""
    try:
        return load(folder), ""
    except ConfError as error:
        written = place_of(folder)
        if written is None or not files_in(written.lake).is_dir():
            raise
        return read_conf(folder, files_in(written.lake)), str(error)


def running(lake: LakeStore) -> KeptConf | None:
    """Return the conf that the lake was run with last; None for a lake that keeps none yet."""
    noted = eras(lake.checkpoint(READINGS))
    return kept_conf(lake.conf.lake, noted[-1].version) if noted else None


def take_up(lake: LakeStore, now: datetime) -> None:
    """Keep the conf of a run that begins, if it is another than that of the run before; it holds from the next bronze batch on.

    A lake in which silver has not begun keeps none: silver will read all of bronze with the conf that it begins with.
    """
    before, silver = running(lake), lake.checkpoint(READINGS)
    if binding_of(silver).read() is None:
        return
    following = next_bronze_batch(source_offsets(lake.table_path("bronze.events"))) if before else 0
    version = _version(lake, following, now)
    if before is None or before.version != version:
        note(silver, [*(era for era in eras(silver) if era.since_batch < following), Era(following, version)], retries(silver))


def confs_of_replay(lake: LakeStore, first: int, now: datetime) -> tuple[list[Era], list[int]]:
    """Return the eras and retries of a generation that reads bronze anew from a batch on; what is before that is copied."""
    silver = lake.checkpoint(READINGS)
    copied = [era for era in eras(silver) if era.since_batch < first]
    return [*copied, Era(first, _version(lake, first, now))], retries(silver) if copied else []


def _version(lake: LakeStore, since_batch: int, now: datetime) -> int:
    """Return that of the run before, if the conf still says the same; else a new one."""
    before = running(lake)
    is_same = before is not None and before.digest == digest_of(texts_of(lake.conf))
    return before.version if before and is_same else keep(lake.conf, since_batch, now)


def note_retry(lake: LakeStore) -> None:
    """Note that a retry of quarantine judges events by the conf that runs: they may hold what it gives, and not what theirs gave."""
    silver = lake.checkpoint(READINGS)
    if noted := eras(silver):
        note(silver, noted, [*(version for version in retries(silver) if version != noted[-1].version), noted[-1].version])


def former_confs(lake: LakeStore, after: int) -> list[tuple[int, Conf]]:
    """List confs of bronze batches after one that are read with another than the running one: the first batch behind each, and the conf."""
    spans = pairwise(eras(lake.checkpoint(READINGS)))
    return [(following.since_batch, conf_of(lake.conf, era.version)) for era, following in spans if following.since_batch > after + 1]


def unreplayed_changes(lake: LakeStore) -> dict[SettingPath, str]:
    """Return a sentence for each setting by which earlier batches would be read otherwise; none after a replay."""
    return _unreplayed(lake.conf.lake, tuple(eras(lake.checkpoint(READINGS))))


@lru_cache(maxsize=8)
def _unreplayed(lake: Location, noted: tuple[Era, ...]) -> dict[SettingPath, str]:
    sentences: dict[SettingPath, str] = {}
    now = kept_conf(lake, noted[-1].version) if noted else None
    for era, following in reversed([*pairwise(noted)]):
        kept, since = kept_conf(lake, era.version), following.since_batch
        for change in changes(kept.texts, now.texts) if kept and now else ():
            if change.consequence is Consequence.FOR_ALL:
                as_read = "readings of earlier batches stay as they were read; `tidemark replay` reads them anew"
                sentences.setdefault(change.path, f"{change} since bronze batch {since}: {as_read}")
    return sentences


def pending_changes(lake: LakeStore) -> list[Change]:
    """Compare the conf that is written now with the one that the lake runs; none where the lake keeps no conf yet."""
    kept = running(lake)
    return changes(kept.texts, texts_of(lake.conf), [held.path for held in held_back(lake)]) if kept else []


def held_back(lake: LakeStore) -> list[HeldBack]:
    """List what the conf says that the lake cannot go on with."""
    kept = running(lake)
    changed = changes(kept.texts, texts_of(lake.conf)) if kept else []
    held = [HeldBack(change.path, str(change)) for change in changed if _needs_what_was(lake, change)]
    for stream in lake.conf.streams:
        held += changed_plan(lake, f"gold.{stream}")
    for name, flow in lake.conf.flows.items():
        step = step_file(lake, name).read()
        if step and step.number and step.plan != (plan := plan_of_flow(flow)):
            held.append(HeldBack(("flows", name), f"flow {name} was {step.plan}, and is {plan} now"))
    return held


def _needs_what_was(lake: LakeStore, change: Change) -> bool:
    """Whether no table could go on, or open windows of a group that leaves its stream would never close."""
    match change.path:
        case "groups", group, "stream":
            return knows_group(lake, change.was, group) and not knows_group(lake, change.now, group)
        case _:
            return change.consequence is Consequence.NEW_LAKE


def refusal(lake: LakeStore, folder: Path, held: Sequence[HeldBack]) -> ConfError:
    """Say what the lake cannot go on with, where it is written, and the ways out."""
    lines = "\n".join(f"{line_of(folder, one.path)}{one.sentence}" for one in held)
    renamed = ", or give the flow another name, under which it begins anew" if any(one.path[0] == "flows" for one in held) else ""
    needs_lake = any(one.path == ("pipeline", "pipeline") for one in held)
    way_out = "name another `lake` in pipeline.yml" if needs_lake else f"build silver and gold under it, with `{lake.conf.command} replay`"
    return ConfError(f"{lines}\n  The lake cannot go on with that: put it back{renamed}, or {way_out}.")


@lru_cache(maxsize=32)
def difference_to_before(lake: Location, version: int) -> tuple[str, ...]:
    """Return what a conf changed of the one before it, in lines for people; nothing for the first."""
    before, kept = kept_conf(lake, version - 1), kept_conf(lake, version)
    return tuple(grouped(changes(before.texts, kept.texts))) if before and kept else ()
