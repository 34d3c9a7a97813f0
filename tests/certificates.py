"""Certificates for servers of tests."""

import subprocess
from pathlib import Path

COMMAND = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"


def self_signed(folder: Path, name: str = "server") -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    files = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*COMMAND.split(), *files], check=True, capture_output=True)
    return certificate, key
