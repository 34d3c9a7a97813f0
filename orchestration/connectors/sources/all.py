"""Every source of a lake, as conf declares it: the one list that a new kind of source is added to."""

from collections.abc import Mapping, Sequence

from orchestration.conf.model import Conf
from orchestration.conf.transport_settings import Collected, DeltaSettings, KafkaSettings, LandingFolder, S3Settings
from orchestration.connectors.sources.delta import Delta
from orchestration.connectors.sources.files import Files
from orchestration.connectors.sources.source import Source, SourceDownError, UnmadeSource, own_fault
from orchestration.connectors.sources.spool import Spool
from orchestration.errors import TidemarkError
from orchestration.storage.lake_layout import claims_folder, spool_folder
from orchestration.storage.payload_formats import former, payload_formats
from orchestration.storage.source_offsets import SourceOffset, source_offsets
from orchestration.storage.tables import LakeStore


def sources(conf: Conf) -> Sequence[Source]:
    """List the sources of conf that are not paused, and former sources whose files or events may not be in bronze yet."""
    offsets = source_offsets(LakeStore(conf).table_path("bronze.events"))
    paused = {name for name, declared in conf.sources.items() if declared.is_paused}
    return [_made(conf, name, offsets) for name in payload_formats(conf) if name not in paused]


def source_of(conf: Conf, name: str) -> Source:
    """One of them; nothing is asked or read yet."""
    transport, most = conf.sources[name].transport if name in conf.sources else None, conf.engine.max_batch_bytes
    if isinstance(transport, KafkaSettings):
        from orchestration.connectors.sources.kafka import Kafka  # its client is an extra

        return Kafka(name, transport, most)
    if isinstance(transport, S3Settings):
        from orchestration.connectors.sources.s3 import S3  # its client is an extra

        return S3(name, transport, conf.sources[name].payload_format, conf.lake, most)
    if isinstance(transport, DeltaSettings):
        return Delta(name, transport, most)
    # A source that conf no longer names was pushed if it has a spool.
    is_pushed = isinstance(transport, Collected) if transport else spool_folder(conf.lake, name).local.exists()
    return _spool(conf, name) if is_pushed else _files(conf, name)


def _made(conf: Conf, name: str, offsets: Mapping[str, SourceOffset]) -> Source:
    """Make a source; where that fails, it alone is down."""
    try:
        with own_fault(name):
            made = source_of(conf, name)
            if name in conf.sources:
                _check_left(conf, made, offsets)
    except SourceDownError as error:
        return UnmadeSource(name, str(error))
    return made


def _check_left(conf: Conf, source: Source, offsets: Mapping[str, SourceOffset]) -> None:
    """TidemarkError where a source had another transport before, and bronze has not read all of its events."""
    name = source.name
    start = offsets[name].offset if name in offsets else {}
    claims, spool = claims_folder(conf.lake, name), spool_folder(conf.lake, name)
    files = Files(name, claims.local, payload_formats(conf)[name], conf.engine.max_batch_bytes)
    for folder, before in ((claims, files), (spool, _spool(conf, name))):
        if folder.is_dir() and not isinstance(source, type(before)) and before.latest_offset(start) != start:
            raise TidemarkError(
                f"source {name} had another transport before (such as http), and {folder} holds events that bronze has not read.\n"
                "  Restore that transport in sources.yml for one `tidemark run --once`, or rename the new source."
            )


def _spool(conf: Conf, name: str) -> Spool:
    return Spool(name, spool_folder(conf.lake, name).local, conf.engine.max_batch_bytes)


def _files(conf: Conf, name: str) -> Files:
    landing, others = None, []
    if (declared := conf.sources.get(name)) is not None and isinstance(declared.transport, LandingFolder):
        landing, others = declared.transport, [claims_folder(conf.lake, gone).local for gone in former(conf)]
    shape = payload_formats(conf)[name]
    return Files(name, claims_folder(conf.lake, name).local, shape, conf.engine.max_batch_bytes, landing, others)
