"""The SQL server: snapshots of a lake for clients of PostgreSQL, a process for each connection.

The server itself answers nothing and runs no thread, so that it can fork. A process that crashes or is killed ends one connection.
"""

import gc
import os
import select
import shlex
import signal
import socket
import ssl
import struct
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute  # once, for all processes

from orchestration.conf.model import Conf
from orchestration.conf.pipeline_settings import SqlServerSettings
from orchestration.conf.transport_settings import TlsSettings
from orchestration.connectors.collector.sockets import bind, place, server_context
from orchestration.engine.java import machine_memory
from orchestration.errors import TidemarkError
from orchestration.rendering import visible
from orchestration.serving.postgres import catalog
from orchestration.serving.postgres.activity import MAX_ACTIVE, NAME_BYTES, Activity, Connection, cut
from orchestration.serving.postgres.address import users_of
from orchestration.serving.postgres.databases import Databases
from orchestration.serving.postgres.login import login
from orchestration.serving.postgres.session import Session
from orchestration.serving.postgres.settings import DEFAULTS
from orchestration.serving.postgres.watch import CANCEL, END, Watch
from orchestration.serving.postgres.wire import PostgresError, ProtocolError, Wire, error
from orchestration.serving.sql import landlock
from orchestration.serving.sql.duckdb_engine import bounded_memory
from orchestration.serving.sql.workers import TAKEN_FIRST
from orchestration.storage.views import Plant

MAX_LOGINS = 20
"""Connections beside those that have logged in."""
POLL_SECONDS, END_SECONDS, IDLE_SECONDS = 1.0, 3.0, 3600.0
MEMORY_BYTES = 2 << 30
PR_SET_PDEATHSIG = 1
SIGNALS = {CANCEL, END, signal.SIGINT}


def serve(conf: Conf, settings: SqlServerSettings, notify: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    users = users_of(conf.lake, settings.users)
    tls = server_context(TlsSettings(settings.certificate, settings.key) if settings.certificate and settings.key else None)
    try:
        listener = bind(settings.host, settings.port)
    except OSError as refused:
        where = f"the SQL server cannot listen on {settings.host}, port {settings.port}"
        raise TidemarkError(f"{where}: {os.strerror(refused.errno or 0)}; set sql_server in pipeline.yml, or --port.") from refused
    with listener:
        command = shlex.join(["tidemark", *sys.argv[1:], "--url"])
        notify(f'SQL for clients of PostgreSQL at {place(listener)}; connect with psql "$({command})"')
        Server(conf.place, users, tls, settings.connections).serve(listener)


@dataclass(frozen=True)
class Server:
    """Serves snapshots of a plant to users, by name with their password. `tls`: None where connections are not encrypted."""

    plant: Plant
    users: Mapping[str, str]
    tls: ssl.SSLContext | None
    connections: int

    def serve(self, listener: socket.socket) -> None:
        """Serve until SIGTERM or Ctrl-C, which ends all connections."""
        signal.signal(END, signal.default_int_handler)
        self.plant.group_windows  # noqa: B018 - read once, for all processes
        pyarrow.array([0])  # its allocator reserves 1 GiB at once; in a connection that would count against the limit of memory
        catalog.system_database()
        gc.freeze()
        activity, processes = Activity(self.connections), set[int]()
        listener.setblocking(False)  # a client may be gone before it is accepted
        try:
            while True:
                _reap(processes, activity)
                if select.select([listener], [], [], POLL_SECONDS)[0]:
                    self._accept(listener, activity, processes)
        except KeyboardInterrupt:
            listener.close()
            _end(processes)

    def _accept(self, listener: socket.socket, activity: Activity, processes: set[int]) -> None:
        with suppress(OSError):  # the client is gone already, or the machine is short of processes or files
            client, _ = listener.accept()
            with client:
                if len(processes) < self.connections + MAX_LOGINS:
                    server = os.getpid()
                    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # the process of a connection keeps them so, for its watch
                    try:
                        if not (process := os.fork()):
                            listener.close()
                            self._connected(client, activity, server)
                        processes.add(process)
                    finally:
                        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _connected(self, client: socket.socket, activity: Activity, server: int) -> None:
        """Serve a client in a process of its own, which ends with it, and with the server."""
        try:
            landlock.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == server:
                with suppress(OSError):  # no Linux
                    Path("/proc/self/oom_score_adj").write_text(TAKEN_FIRST)
                self._answered(Wire(client), activity)
        except (EOFError, OSError):  # the client is gone
            pass
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)

    def _answered(self, wire: Wire, activity: Activity) -> None:
        client = wire.socket
        for level, option in ((socket.IPPROTO_TCP, socket.TCP_NODELAY), (socket.SOL_SOCKET, socket.SO_KEEPALIVE)):
            client.setsockopt(level, option, 1)
        client.settimeout(IDLE_SECONDS)
        watch = Watch(wire, activity)
        try:
            if session := self._session(wire, activity, watch):
                with bounded_memory(min(MEMORY_BYTES, machine_memory() // 2 // MAX_ACTIVE)):
                    session.run()
            return
        except TimeoutError:
            problem = PostgresError("57P05", "terminating connection due to idle-session timeout")
        except MemoryError:
            problem = PostgresError("53200", "out of memory; the connection ends with it")
        except PostgresError as error_of_login:
            problem = error_of_login
        except (ProtocolError, struct.error, ValueError) as mistake:
            problem = PostgresError("08P01", f"invalid message: {mistake}")
        print(f"tidemark: a connection from {client.getpeername()[0]} ended: {visible(problem.message)}", file=sys.stderr)
        wire.write("E", error(problem, "FATAL"))
        wire.flush()

    def _session(self, wire: Wire, activity: Activity, watch: Watch) -> Session | None:
        """Log a client in; None after a request to cancel. From here on the process may change no file."""
        client = login(wire, activity, self.users, self.tls)
        if client is None:
            return None
        address, port = wire.socket.getpeername()[:2]
        own = Connection(user=client.user, database=cut(client.database, NAME_BYTES), client_address=address, client_port=port)
        if not activity.enter(own):
            raise PostgresError("53300", f"sorry, too many clients already: at most {self.connections} connections")
        watch.ends()
        if landlock.is_supported():
            landlock.restrict()
        settings = DEFAULTS | {"database": client.database, "user": client.user, "session_authorization": client.user}
        databases = Databases(self.plant, settings, activity)
        watch.interrupt = databases.interrupt
        wire.write("R", struct.pack("!i", 0))
        session = Session(wire, databases, settings, watch)
        for name, value in client.settings.items():
            session.change(name, value)
        wire.write("K", struct.pack("!i", own.pid), own.key)
        return session


def _reap(processes: set[int], activity: Activity) -> None:
    """Take leave of processes that have ended; their numbers are theirs until then."""
    while processes and (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)):
        activity.leave(ended.si_pid)
        os.waitpid(ended.si_pid, 0)
        processes.discard(ended.si_pid)
        if ended.si_code != os.CLD_EXITED:
            print(f"tidemark: the process of a connection was ended by signal {ended.si_status}", file=sys.stderr)


def _end(processes: set[int]) -> None:
    """End all processes: they say so to their clients. One that does not is killed when the server ends."""
    for process in processes:
        os.kill(process, END)
    end = time.monotonic() + END_SECONDS
    while processes and time.monotonic() < end:
        processes -= {process for process in processes if os.waitpid(process, os.WNOHANG)[0]}
        time.sleep(0.02)
