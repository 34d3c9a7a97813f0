"""Connections over which the JVM calls Python: py4j opens one for each thread of the JVM, and so one for each query that is started.

It never closes them, though the thread has ended: each keeps a socket on either side and a thread in Python. A run that goes on starts
queries of gold all the time, and had no descriptors left within hours (measured by the soak: 4 to 5 more a minute).
"""

from collections.abc import Collection
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import SparkContext

SERVER = "GATEWAY_SERVER"
"""The name of py4j's own end in the JVM."""


def calling_port() -> int:
    """Return the port of the JVM's end of the connection that calls this code."""
    port: int = _client().get_thread_connection().socket.getpeername()[1]
    return port


def close_connections(ports: Collection[int]) -> None:
    """Close connections of these ports that are open and not in use. Python's ends close with them, and their threads end."""
    if not ports:  # a run that has nothing to do has no JVM
        return
    caller = JavaObject(SERVER, _client()).getCallbackClient()
    lock, unused = (_hidden(caller, name) for name in ("lock", "connections"))
    lock.lock()  # other threads of the JVM take theirs out for each call, and put it back
    try:
        for connection in unused.toArray():
            if connection.getSocket().getLocalPort() in ports:
                unused.remove(connection)
                connection.shutdown()
    finally:
        lock.unlock()


def _client() -> Any:
    return SparkContext._gateway._gateway_client  # type: ignore[union-attr]


def _hidden(caller: Any, name: str) -> Any:
    """A field of py4j's CallbackClient, from which the class of `caller` is made."""
    field = caller.getClass().getSuperclass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(caller)
