"""Numbers as devices write them."""

from pyspark.sql import Column
from pyspark.sql import functions as F


def to_number(text: Column) -> Column:
    """A double; null where `text` is no decimal. A cast alone also reads 1d, 1f and hexadecimals, as Java does."""
    return F.when(~text.rlike(r"(?i)[0-9.][df][\x00-\x20]*\z|0x"), text.try_cast("double"))
