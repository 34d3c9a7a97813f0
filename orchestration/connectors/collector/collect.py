"""`tidemark collect`: takes the events of sources that are pushed, and acknowledges what is on the disk."""

import asyncio
import gc
import re
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from math import inf

import uvloop

from orchestration.conf.model import Conf
from orchestration.conf.transport_settings import Collected, HttpSettings, KinesisSettings, MqttSettings, TcpSettings
from orchestration.connectors.collector import http_server, tcp
from orchestration.connectors.collector.kind import Notify, Pushed, Served
from orchestration.connectors.collector.spool import SpoolWriter
from orchestration.connectors.sources.spool import SEGMENT
from orchestration.errors import ConfError
from orchestration.storage.lake_layout import spool_folder
from orchestration.storage.source_offsets import source_offsets
from orchestration.storage.tables import LakeStore


async def _serve_mqtt(pushed: Pushed, notify: Notify) -> Served:
    from orchestration.connectors.collector import mqtt  # its client is an extra

    return await mqtt.serve(pushed, notify)


async def _serve_kinesis(pushed: Pushed, notify: Notify) -> Served:
    from orchestration.connectors.collector import kinesis  # its client is an extra, and takes a while

    return await kinesis.serve(pushed, notify)


SILENT_SECONDS, MOST_SAID = 60.0, 1_000
OF_CONNECTIONS = re.compile(r" is closed: |^a connection failed")
KINDS: Mapping[type[Collected], Callable[[Pushed, Notify], Awaitable[Served]]] = {
    HttpSettings: http_server.serve,
    TcpSettings: tcp.serve,
    MqttSettings: _serve_mqtt,
    KinesisSettings: _serve_kinesis,
}
"""The one list that a new kind is added to: what starts a source, by the way its events come."""


def collect(conf: Conf, names: Sequence[str], notify: Notify) -> None:
    """Take events of the named sources, or of all that are collected, until SIGTERM or Ctrl-C; HeldError where another process does."""
    offsets = source_offsets(LakeStore(conf).table_path("bronze.events"))
    with ExitStack() as spools:
        chosen = []
        for name in _names(conf, names):
            source, offset = conf.sources[name], offsets[name].offset if name in offsets else {}
            endpoint = source.transport
            assert isinstance(endpoint, Collected)
            spool = SpoolWriter(spool_folder(conf.lake, name).local, endpoint.max_spool_bytes, int(offset.get(SEGMENT, -1)) + 1)
            spools.callback(spool.close)
            chosen.append(Pushed(source, endpoint, spool, conf.lake))
        gc.freeze()  # or a full collection walks over all that was imported, and everybody waits for it
        uvloop.run(_serve(chosen, notify))


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


async def _serve(chosen: Sequence[Pushed], notify: Notify) -> None:
    loop, stop, notify = asyncio.get_running_loop(), asyncio.Event(), sparing(notify)
    loop.set_exception_handler(lambda _, context: notify(f"a connection failed: {context.get('exception') or context['message']}"))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    stopping, served = asyncio.create_task(stop.wait()), list[Served]()
    try:
        for pushed in chosen:
            served.append(await KINDS[type(pushed.endpoint)](pushed, notify))
        done, _ = await asyncio.wait([stopping, *(one.task for one in served)], return_when=asyncio.FIRST_COMPLETED)
        for ended in done:
            ended.result()  # of a source that has failed: it ends all of them
    finally:
        for one in served:
            await one.stop()
