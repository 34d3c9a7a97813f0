"""Settings of section `references` of pipeline.yml."""

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from expectations.settings import Key, OrAbsent, Setting, UniqueSome
from orchestration.conf.values import AbsolutePath


def _named_as_columns(written: Any) -> Any:
    """A list names columns whose attributes have the same names."""
    if not isinstance(written, list) or not all(isinstance(name, str) for name in written):
        return written
    if len(set(written)) < len(written):
        raise PydanticCustomError("twice", "names a column twice")
    return dict(zip(written, written, strict=True))


_Columns = Annotated[dict[Key, Key], Field(min_length=1)]
Columns = Annotated[_Columns, BeforeValidator(_named_as_columns, json_schema_input_type=_Columns | UniqueSome[Key])]


@dataclass(frozen=True)
class ReferenceSettings(Setting):
    """A table of yours with one row a device or a zone: set `device_id` or `zone`. For an event counts what it said when the event was
    ingested."""

    one_of: ClassVar[tuple[str, ...]] = ("device_id", "zone")
    path: AbsolutePath = Field(examples=["./reference/customers.csv", "./reference/lines"])
    """A CSV file (UTF-8, commas, a header), or the folder of a Delta table. A path as for `lake`. It is read when a run starts, and again
    when it has changed."""
    attributes: Columns = Field(examples=[["customer", "contract"], {"shift_foreman": "foreman"}])
    """Attributes that readings get: columns of the table by the name of the attribute. A list names columns whose attributes have the
    same name. An attribute that the event has itself stays as it is."""
    device_id: OrAbsent[Key] = Field(default=None, examples=["serial"])
    """The column that holds devices, as readings name them."""
    zone: OrAbsent[Key] = Field(default=None, examples=["hall"])
    """The column that holds zones, as readings name them."""

    @property
    def key_column(self) -> str:
        """The column of the table that holds keys; `chosen` says of what."""
        return self.device_id or self.zone or ""
