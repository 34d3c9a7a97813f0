"""Every source of a lake, as conf declares it: the one list that a new kind of source is added to."""

from collections.abc import Sequence

from orchestration.conf.model import Conf
from orchestration.connectors.sources.files import Files
from orchestration.connectors.sources.source import Source
from orchestration.storage.retired_sources import claims_folder, former, payload_formats


def sources(conf: Conf) -> Sequence[Source]:
    """Those of conf; and those that it no longer names, of which files may be claimed that bronze has not read."""
    gone = [claims_folder(conf.lake, name).local for name in former(conf)]
    return [
        Files(
            name,
            claims_folder(conf.lake, name).local,
            shape.has_header,
            conf.engine.max_batch_bytes,
            conf.sources.get(name),
            gone if name in conf.sources else (),
        )
        for name, shape in payload_formats(conf).items()
    ]
