"""The machine's certificate authorities, for a Java that does not know them.

A Java from PyPI or from an archive brings its own list, which lacks the authority of a company
or a cloud through which downloads may have to go. Python and the system know it.
"""

import hashlib
import os
import re
import ssl
import struct
import time
from collections.abc import Iterator
from pathlib import Path

# Where pip, requests and OpenSSL are told about authorities, then where systems keep them.
_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
_PEM = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def trust_options(store: Path) -> str:
    """Write the authorities to a Java key store; returns the options that make Java use it."""
    store.write_bytes(key_store(certificates()))
    return f'-Djavax.net.ssl.trustStoreType=JKS "-Djavax.net.ssl.trustStore={store}"'


def certificates() -> list[bytes]:
    """Every authority that the environment or the system names, once, in DER form."""
    blocks = [block for bundle in _bundles() for block in _PEM.findall(bundle.read_text("latin-1"))]
    return [ssl.PEM_cert_to_DER_cert(block) for block in dict.fromkeys(blocks)]


def key_store(authorities: list[bytes]) -> bytes:
    """A Java key store (JKS, version 2) of trusted certificates; it holds no secret."""
    trusted_certificate, now_ms = 2, time.time_ns() // 10**6
    body = struct.pack(">III", 0xFEEDFEED, 2, len(authorities))
    for number, certificate in enumerate(authorities):
        body += struct.pack(">I", trusted_certificate) + _text(str(number))
        body += struct.pack(">Q", now_ms) + _text("X.509")
        body += struct.pack(">I", len(certificate)) + certificate
    # The format ends with a checksum salted like this; the password is Java's public default.
    salt = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(salt + body).digest()


def _bundles() -> Iterator[Path]:
    named = (os.environ.get(variable) for variable in _VARIABLES)
    for name in (*named, *_SYSTEM_BUNDLES):
        if name and Path(name).is_file():
            yield Path(name)


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode("ascii")
