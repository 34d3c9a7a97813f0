"""Vectors of any number of windows: Spark hands the function of gold/vectors.py one slice of time of some entities after another."""

from collections.abc import Iterator, Mapping
from math import ceil

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gold.schema import VECTORS
from gold.spec import Group, Vector
from gold.vectors import in_blocks
from orchestration.engine.pieces import LIMITS, Piece
from silver.spec import Metric

DAY_SECONDS = 86_400
OF_EVERY_ROW = ("revision", "gold_batch")


def vectors(windows: DataFrame, group: Group, vector: Vector, metrics: Mapping[str, Metric]) -> DataFrame:
    """See gold.vectors.vectors. A window is in its slice of time, and in the next one too where it may fill vectors of that."""
    slice_seconds = max(DAY_SECONDS, vector.max_fill_seconds)
    first, last = (F.floor((F.unix_seconds("window_end") + seconds) / slice_seconds) for seconds in (0, vector.max_fill_seconds))
    count, slices = windows.agg(F.count("*"), F.count_distinct(first)).collect()[0]
    # Only time cuts the windows of an entity that has features of many devices.
    buckets = ceil(count / max(slices, 1) / LIMITS.rows) if vector.entity == "device" else 1
    in_slices = windows.withColumns({"slice": F.explode(F.sequence(first, last)), "bucket": _bucket(buckets)})
    schema = windows.sparkSession.createDataFrame([], VECTORS).drop(*OF_EVERY_ROW).schema

    def of_slice(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin = key[0].as_py() * slice_seconds
        of_this = Piece(group, begin, begin + slice_seconds - 1)
        for block in in_blocks(pa.Table.from_batches(batches), group, vector, metrics):
            yield from of_this.ending_in(block).to_batches()

    return in_slices.groupBy("slice", "bucket").applyInArrow(of_slice, schema)


def _bucket(buckets: int) -> Column:
    return F.pmod(F.xxhash64("device_id"), F.lit(buckets))
