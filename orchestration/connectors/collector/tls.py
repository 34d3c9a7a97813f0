"""Certificates of the collector, as a server and as a client."""

import ssl

from orchestration.conf.transport_settings import ClientTlsSettings, TlsSettings
from orchestration.errors import TidemarkError


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
