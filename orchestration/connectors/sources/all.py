"""Every source of a lake, as conf declares it: the one list that a new kind of source is added to."""

from collections.abc import Sequence

from orchestration.conf.model import Conf, HttpEndpoint, LandingFolder, TcpEndpoint
from orchestration.connectors.sources.files import Files
from orchestration.connectors.sources.source import Source
from orchestration.connectors.sources.spool import Spool
from orchestration.storage.retired_sources import claims_folder, former, payload_formats, spool_folder


def sources(conf: Conf) -> Sequence[Source]:
    """Those of conf; and those that it no longer names, of which files may be claimed that bronze has not read."""
    return [_spool(conf, name) if _is_pushed(conf, name) else _files(conf, name) for name in payload_formats(conf)]


def _is_pushed(conf: Conf, name: str) -> bool:
    """Of one that conf no longer names its spool says so."""
    declared = conf.sources.get(name)
    return isinstance(declared.transport, HttpEndpoint | TcpEndpoint) if declared else spool_folder(conf.lake, name).exists()


def _spool(conf: Conf, name: str) -> Spool:
    return Spool(name, spool_folder(conf.lake, name).local, conf.engine.max_batch_bytes)


def _files(conf: Conf, name: str) -> Files:
    landing, others = None, []
    if (declared := conf.sources.get(name)) is not None and isinstance(declared.transport, LandingFolder):
        landing, others = declared.transport, [claims_folder(conf.lake, gone).local for gone in former(conf)]
    has_header = payload_formats(conf)[name].has_header
    return Files(name, claims_folder(conf.lake, name).local, has_header, conf.engine.max_batch_bytes, landing, others)
