"""`tidemark collect`: takes the events of sources that are pushed, and acknowledges what is on the disk."""

import asyncio
import gc
import re
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from math import inf

import uvloop

from orchestration.conf.model import Conf
from orchestration.conf.transport_settings import Collected, HttpSettings, KinesisSettings, MqttSettings, TcpSettings
from orchestration.connectors.collector import http_server, tcp
from orchestration.connectors.collector.kind import Notify, OutageReport, Pushed, Served
from orchestration.connectors.collector.spool import SpoolWriter
from orchestration.connectors.sources.landing_hosts import refuse_other_collector
from orchestration.connectors.sources.spool import SEGMENT
from orchestration.errors import ConfError, TidemarkError, without_secrets
from orchestration.storage.lake_layout import spool_folder
from orchestration.storage.source_offsets import source_offsets
from orchestration.storage.tables import LakeStore


async def _serve_mqtt(pushed: Pushed) -> Served:
    from orchestration.connectors.collector import mqtt  # its client is an extra

    return await mqtt.serve(pushed)


async def _serve_kinesis(pushed: Pushed) -> Served:
    from orchestration.connectors.collector import kinesis  # its client is an extra, and takes a while

    return await kinesis.serve(pushed)


SILENT_SECONDS, MOST_SAID, RETRY_SECONDS = 60.0, 1_000, 1.0
OF_CONNECTIONS = re.compile(r" is closed: |^a connection failed")
KINDS: Mapping[type[Collected], Callable[[Pushed], Awaitable[Served]]] = {
    HttpSettings: http_server.serve,
    TcpSettings: tcp.serve,
    MqttSettings: _serve_mqtt,
    KinesisSettings: _serve_kinesis,
}
"""The one list that a new kind is added to: what starts a source, by the way its events come."""


def collect(conf: Conf, names: Sequence[str], notify: Notify) -> None:
    """Take events of the named sources, or of all that are collected, until SIGTERM or Ctrl-C. Where each fails, the error of the first."""
    collector = _Collector(conf, _names(conf, names), sparing(notify))
    gc.freeze()  # or a full collection walks over all that was imported, and everybody waits for it
    uvloop.run(collector.serve())


def _spool(conf: Conf, name: str) -> SpoolWriter:
    refuse_other_collector(conf.lake, name)
    offsets = source_offsets(LakeStore(conf).table_path("bronze.events"))
    offset = offsets[name].offset if name in offsets else {}
    return SpoolWriter(spool_folder(conf.lake, name).local, _endpoint(conf, name).max_spool_bytes, int(offset.get(SEGMENT, -1)) + 1)


def _endpoint(conf: Conf, name: str) -> Collected:
    endpoint = conf.sources[name].transport
    assert isinstance(endpoint, Collected)
    return endpoint


def sparing(notify: Notify) -> Notify:
    """Return a `notify` that says one thing about connections once a minute, and how often it was so: or each could write a line."""
    said_at, unsaid = dict[str, float](), Counter[str]()

    def say(line: str) -> None:
        if not OF_CONNECTIONS.search(line):
            notify(line)
            return
        what = re.sub(r"\d+", "#", line.partition(" is closed: ")[2] or line)
        now = time.monotonic()
        if now < said_at.get(what, -inf) + SILENT_SECONDS:
            unsaid[what] += 1
            return
        if len(said_at) > MOST_SAID:
            said_at.clear()
        said_at[what] = now
        notify(f"{line} (and {count:,} times since the last time)" if (count := unsaid.pop(what, 0)) else line)

    return say


def _names(conf: Conf, names: Sequence[str]) -> list[str]:
    collected = [name for name, source in conf.sources.items() if isinstance(source.transport, Collected)]
    if odd := sorted(set(names) - set(collected)):
        such = ", ".join(collected) or "none"
        raise ConfError(f"{odd[0]} is not an http, tcp, mqtt or kinesis source; sources.yml has of these: {such}")
    if not collected:
        raise ConfError("sources.yml has no source with http, tcp, mqtt or kinesis; there is nothing to collect")
    return list(dict.fromkeys(names)) or collected


@dataclass
class _Collector:
    """The sources of one process. `failures`: of those that are down as their server failed, why."""

    conf: Conf
    names: Sequence[str]
    notify: Notify
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    failures: dict[str, Exception] = field(default_factory=dict)

    async def serve(self) -> None:
        """Serve all until told to stop; where all have failed, raise the first reason."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.notify(f"a connection failed: {context.get('exception') or context['message']}"))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop.set)
        await asyncio.gather(*map(self._keep_serving, self.names))
        if len(self.failures) == len(self.names):
            raise next(iter(self.failures.values()))

    async def _keep_serving(self, name: str) -> None:
        """Serve one source. One that cannot begin, or that fails, is down, and begins again; the others go on."""
        outage = OutageReport(self.conf.lake, name, self.notify)
        while not self.stop.is_set():
            try:
                with closing(await asyncio.to_thread(_spool, self.conf, name)) as spool:  # it may wait for another holder
                    await self._until_it_ends(Pushed(self.conf.sources[name], _endpoint(self.conf, name), spool, outage, self.notify))
            except Exception as error:
                outage.down(without_secrets(error))
                self.failures[name] = error
                if len(self.failures) == len(self.names):
                    self.stop.set()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.stop.wait(), RETRY_SECONDS)

    async def _until_it_ends(self, pushed: Pushed) -> None:
        """Serve a source until told to stop; whatever its server raises is raised on."""
        served, stopping = await KINDS[type(pushed.endpoint)](pushed), asyncio.create_task(self.stop.wait())
        self.failures.pop(pushed.source.name, None)
        try:
            await asyncio.wait([stopping, served.task], return_when=asyncio.FIRST_COMPLETED)
            if served.task.done():
                served.task.result()
                raise TidemarkError("its server has ended by itself.")
        finally:
            stopping.cancel()
            await served.stop()
