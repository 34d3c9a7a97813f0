"""Proofs of ops.proofs: which one still holds for a part of the lake, so that it need not be computed again; and a new one."""

import hashlib
import json
from datetime import datetime
from functools import cache
from pathlib import Path

import duckdb

from orchestration.audit.verify.lake_snapshot import LakeSnapshot
from orchestration.conf.model import Conf
from orchestration.conf.texts import digest_of, texts_of
from orchestration.storage.kept_confs import READINGS, eras
from orchestration.storage.lake_layout import CORRECTIONS
from orchestration.storage.ops_tables import PROOFS, Proof

ROOT = Path(__file__).parents[3]
EVALUATOR = ("orchestration/audit/verify/**/*.py", "expectations/**/*.py", "silver/**/*.py", "gold/*/spec.py")
"""Files of the code that decides what `verify` finds: its own, decoders, and what a setting is."""


def last_proof(snapshot: LakeSnapshot, conf: Conf) -> Proof | None:
    """Return the newest proof without differences that is by the same evaluator, and of a part of what the snapshot holds."""
    where = [("generation", "=", snapshot.generation.generation), ("differences", "=", 0), ("evaluator", "=", evaluator())]
    proofs = reversed(PROOFS.rows(conf.lake, where))
    return next((proof for proof in proofs if _is_of_a_part(proof, snapshot, conf)), None)


def proof_of(snapshot: LakeSnapshot, conf: Conf, at: datetime, counts: tuple[int, int, int]) -> Proof:
    """Return the proof of a snapshot that was begun at an instant. `counts`: of events, rows and differences."""
    return Proof(
        at,
        snapshot.generation.generation,
        snapshot.bronze_batch,
        evaluator(),
        digest_of(texts_of(conf)),
        _confs(snapshot, conf, snapshot.bronze_batch),
        dict(snapshot.versions),
        dict(snapshot.closed_until),
        *counts,
    )


@cache
def evaluator() -> str:
    """Return the digest of the evaluator's code and of the version of DuckDB, which computes for it."""
    digest = hashlib.sha256(duckdb.__version__.encode())
    for file in sorted(file for pattern in EVALUATOR for file in ROOT.glob(pattern)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _is_of_a_part(proof: Proof, snapshot: LakeSnapshot, conf: Conf) -> bool:
    is_older = all(version <= snapshot.versions.get(name, -1) for name, version in proof.versions.items())
    is_registered_alike = proof.versions.get(CORRECTIONS) == snapshot.versions.get(CORRECTIONS)
    is_read_alike = proof.confs == _confs(snapshot, conf, proof.bronze_batch)
    return is_older and is_registered_alike and is_read_alike and proof.bronze_batch <= snapshot.bronze_batch


def _confs(snapshot: LakeSnapshot, conf: Conf, up_to: int) -> str:
    """Write with which confs bronze was read up to a batch; today's where the lake keeps none."""
    read = [era for era in eras(snapshot.generation.checkpoint(conf.lake, READINGS)) if era.since_batch <= up_to]
    return json.dumps(read) if read else digest_of(texts_of(conf))
