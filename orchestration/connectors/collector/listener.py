"""The socket of a source, and its address for people."""

import socket

from orchestration.conf.meaning import is_loopback
from orchestration.conf.transport_settings import HttpSettings, TcpSettings
from orchestration.errors import TidemarkError

BACKLOG = 2048


def listener(name: str, endpoint: HttpSettings | TcpSettings) -> socket.socket:
    """For the source of that name; TidemarkError where the port is taken or not allowed."""
    host, port = endpoint.host, endpoint.port
    try:
        return bind(host, port)
    except OSError as error:
        where = f"source {name} cannot listen on {host}, port {port}"
        raise TidemarkError(f"{where}: {error.strerror}; choose another one in sources.yml.") from error


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens; OSError where the port is taken or not allowed."""
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG)


def place(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def warning(listening: socket.socket, secret: str | None) -> str:
    """Behind the address of what others can reach and nothing protects."""
    is_open = not is_loopback(listening.getsockname()[0]) and secret is None
    return "; WITHOUT A SECRET: whoever reaches this port can send events" if is_open else ""
