"""Settings of `anomalies` in groups.yml: frozen, free of Spark."""

from typing import Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.settings import Number, OrAbsent, Seconds, Setting, Text, Unique
from gold.alerts.spec import Hours


@dataclass(frozen=True)
class Anomalies(Setting):
    """How vectors of a group are judged. `{}`: by the defaults."""

    detector: Literal["auto", "residual", "novelty"] = "auto"
    """`residual`: by a model of the season, the past and the other features. `novelty`: by how new values are, without a training. `auto`:
    `novelty` for one feature until there are two weeks and 2,000 vectors of a device, else `residual`."""
    features: Unique[Text] = Field(default=(), examples=[["temperature"]])
    """Features of the vector that are judged. Absent: all."""
    learning_seconds: Seconds = Field(default=604_800, ge=1, examples=[604_800])
    """So much time after the first vector the first model of `residual` is trained; it has no score for vectors before that."""
    false_alarms_per_week: OrAbsent[Number] = Field(default=None, ge=0, examples=[1])
    """Alarms of an entity and week that the training may raise: the threshold is the lowest that keeps to it. Absent: the threshold is 2.5
    for `residual`, 2.0 for `novelty`."""
    quiet_hours: OrAbsent[Hours] = Field(default=None, examples=[{"zone": "Europe/Berlin", "from": "22:00", "until": "06:00"}])
    """When no vector is an anomaly, by the end of its window. Absent: never."""

    @property
    def planned_per_week(self) -> float:
        """Alarms of an entity and week that somebody expects."""
        return self.false_alarms_per_week or 1.0
