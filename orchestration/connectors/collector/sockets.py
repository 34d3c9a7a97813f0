"""Sockets of sources: where one listens, its address for people, and certificates, as a server and as a client."""

import socket
import ssl

from orchestration.conf.transport_settings import ClientTlsSettings, HttpSettings, TcpSettings, TlsSettings
from orchestration.conf.values import is_loopback
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
    """Listen; OSError where the port is taken or not allowed."""
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG)


def place(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def warning(listening: socket.socket, secret: str | None) -> str:
    """Behind the address of what others can reach and nothing protects."""
    is_open = not is_loopback(listening.getsockname()[0]) and secret is None
    return "; WITHOUT A SECRET: whoever reaches this port can send events" if is_open else ""


def server_context(tls: TlsSettings | None) -> ssl.SSLContext | None:
    """TidemarkError where the certificate or its key cannot be used."""
    if tls is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except OSError as error:
        remedy = "name a certificate and its key, both in PEM"
        raise TidemarkError(f"{tls.certificate} and {tls.key} cannot be used for TLS ({error.strerror or error}); {remedy}.") from error
    return context


def client_context(tls: ClientTlsSettings | None) -> ssl.SSLContext | None:
    """TidemarkError where a file cannot be used."""
    if tls is None:
        return None
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        if tls.certificate:
            context.load_cert_chain(tls.certificate, tls.key)
    except OSError as error:
        files = ", ".join(str(file) for file in (tls.ca, tls.certificate, tls.key) if file)
        raise TidemarkError(f"{files} cannot be used for TLS ({error.strerror or error}); name files in PEM.") from error
    return context
