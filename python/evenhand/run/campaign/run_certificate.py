# SPDX-License-Identifier: Apache-2.0
"""Campaign: the certificate of one run. Only who has it can speak with the scheduler and the workers that a
run starts.

Whoever reaches a scheduler or a worker of dask can make it run any program, and everybody on a machine
reaches its 127.0.0.1. So a run makes a key and a certificate for itself, hands both to its workers over
their stdin, which no one else can read, and forgets them at its end. They have a name on no disk but while
Python loads them, in a folder that only this user may open.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from typing import IO, Any

from evenhand.base.errors import HostError, RequestError
from evenhand.run.campaign.dask_address import import_distributed

NAME = "evenhand-run"
OPTION = "--certificate-from-stdin"
LONGEST_LINE = 1 << 16
_BEGIN, _END = datetime.datetime(2000, 1, 1), datetime.datetime(2999, 1, 1)
"""The clocks of a lab's machines may be wrong by years; a run ends, and its key with it."""


@dataclass(frozen=True, slots=True)
class RunCertificate:
    """Both parts as PEM."""

    certificate: str
    key: str = field(repr=False)

    def security(self) -> Any:
        """Security of dask that takes only connections with this certificate, in every role."""
        distributed = import_distributed()
        parts = {f"tls_{role}_cert": self.certificate for role in ("client", "scheduler", "worker")}
        keys = {f"tls_{role}_key": self.key for role in ("client", "scheduler", "worker")}
        return distributed.Security(require_encryption=True, tls_ca_file=self.certificate, **parts, **keys)

    def line(self) -> str:
        """What `read_certificate` reads."""
        return json.dumps({"certificate": self.certificate, "key": self.key}) + "\n"


def make_certificate() -> RunCertificate:
    """A new one. HostError if the library that makes it is not installed."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise HostError(
            "a run makes a certificate for the workers that it starts, with cryptography, which is not"
            " installed",
            code="run.no-cryptography",
            where="evenhand[distributed]",
            next_step="Install it here: pip install 'evenhand[distributed]'",
        ) from error
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .sign(key, hashes.SHA256())
    )
    return RunCertificate(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode(),
    )


def read_certificate(stream: IO[str]) -> RunCertificate:
    """What a run hands to its worker as one line. RequestError if it is anything else."""
    line = stream.readline(LONGEST_LINE)
    try:
        parts = json.loads(line)
        certificate = RunCertificate(str(parts["certificate"]), str(parts["key"]))
        certificate.security().get_connection_args("worker")
    except (ValueError, TypeError, KeyError, OSError, RecursionError) as error:
        raise RequestError(
            "there is no certificate of a run",
            code="run.no-certificate",
            where=f"stdin, {OPTION}",
            next_step="Omit this option: `evenhand run --workers` gives it to the workers that it starts.",
        ) from error
    return certificate
