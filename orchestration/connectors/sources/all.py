"""Every source of a lake, as conf declares it: the one list that a new kind of source is added to."""

from collections.abc import Sequence

from orchestration.conf.model import Conf, KafkaTopics
from orchestration.connectors.sources.files import Files
from orchestration.connectors.sources.kafka import Kafka
from orchestration.connectors.sources.source import Source
from orchestration.storage.retired_sources import claims_folder, former, payload_formats


def sources(conf: Conf) -> Sequence[Source]:
    """Those of conf; and those that it no longer names, of which files may be claimed that bronze has not read."""
    return [_source(conf, name) for name in payload_formats(conf)]


def _source(conf: Conf, name: str) -> Source:
    landing, others = None, []
    if (declared := conf.sources.get(name)) is not None:
        if isinstance(declared.transport, KafkaTopics):
            return Kafka(name, declared.transport, conf.engine.max_batch_bytes)
        landing, others = declared.transport, [claims_folder(conf.lake, gone).local for gone in former(conf)]
    has_header = payload_formats(conf)[name].has_header
    return Files(name, claims_folder(conf.lake, name).local, has_header, conf.engine.max_batch_bytes, landing, others)
