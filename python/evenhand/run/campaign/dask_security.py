# SPDX-License-Identifier: Apache-2.0
"""Campaign: where a scheduler of dask.distributed is, looked at before anything is started towards it.

dask's own `Client` is not asked: it waits for ever for an answer from a port that says nothing; and one that
fails is left open, so that Python may close it in the middle of starting the next, which then waits for
itself for ever.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import logging
import socket
from dataclasses import dataclass, field
from types import ModuleType
from typing import IO, Any, Literal, NamedTuple

from evenhand.base.errors import HostError, RequestError
from evenhand.base.programs import how_to_get_extra

GUIDE = "docs/how-to/measure-on-several-testbeds.md"
Role = Literal["client", "worker"]


class SchedulerPlace(NamedTuple):
    """Where a scheduler is."""

    address: str
    """The address as the user wrote it."""
    host: str
    port: int
    connection_args: dict[str, Any]
    """Arguments as dask is configured here for the role that asked: certificates, and whether encryption is
    required."""


class WithoutPages:
    """Mixed into a scheduler or a worker of dask: it opens no port for pages about itself, which dask does
    whatever is configured. Everybody on the machine could read them."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """Called by dask."""


def import_distributed() -> ModuleType:
    """HostError if it is not installed."""
    try:
        import distributed
    except ImportError as error:
        raise HostError(
            "campaigns on several testbeds need dask.distributed, which is not installed",
            code="run.dask-missing",
            where="evenhand[distributed]",
            next_step="Install it here, on each worker and on the scheduler's machine:"
            f" {how_to_get_extra('distributed')}",
        ) from error
    # It logs every connection; what concerns a user is reported here. Its client has a level of its own.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed


def scheduler_place(address: str, *, where: str, role: Role, security: Any = None) -> SchedulerPlace:
    """What an address means, if one of this kind can be reached as dask is configured here. Nothing is sent.

    Args:
        where: Argument or option that holds the address.
        role: Whose certificate dask's configuration must name for `tls://`.
        security: Certificates of dask; None: those of its configuration.

    Raises:
        RequestError: It is not an address, or not of the kind that dask's configuration demands.
        HostError: dask.distributed is not installed; the certificates for `tls://` cannot be used.
    """
    distributed = import_distributed()
    from distributed.comm.addressing import get_address_host_port, normalize_address

    try:
        whole = normalize_address(address)
        scheme = whole.partition("://")[0]
        host, port = get_address_host_port(whole, strict=True)
        host.encode("idna")  # what Python asks the resolver for
        if scheme not in ("tcp", "tls") or not host or not 0 < port < 1 << 16:
            raise ValueError
    except ValueError as error:
        kind = "tls" if address.startswith("tls:") else "tcp"
        raise RequestError(
            f"{address!r} is not the address of a scheduler",
            code="run.not-a-scheduler-address",
            where=where,
            next_step=f"Write {kind}://HOST:8786, with an IPv6 address in brackets.",
        ) from error
    try:
        settings: dict[str, Any] = (security or distributed.Security()).get_connection_args(role)
    except (OSError, ValueError) as error:
        raise _no_certificate(
            f"dask cannot use the certificates in its configuration for a {role}: {error}", address
        ) from error
    if scheme == "tls" and settings["ssl_context"] is None:
        raise _no_certificate(
            f"tls:// needs certificates, but dask's configuration has none for a {role}", address
        )
    if scheme == "tcp" and settings["require_encryption"]:
        raise RequestError(
            f"dask's configuration requires encryption, but {address!r} does not use it",
            code="run.encryption-required",
            where=where,
            next_step=f"Write {whole.replace('tcp', 'tls', 1)}.",
        )
    return SchedulerPlace(address, host, port, settings)


async def ask_scheduler(scheduler: SchedulerPlace, wait_s: float) -> None:
    """HostError if none answers there within this time, whatever does answer."""
    distributed = import_distributed()
    try:
        async with distributed.rpc(scheduler.address, connection_args=scheduler.connection_args) as found:
            identity = await asyncio.wait_for(found.identity(), wait_s)
        if identity["type"] != "Scheduler":
            raise TypeError(identity["type"])
    except Exception as error:  # errors of dask, of TLS, or caused by an unexpected answer
        raise no_scheduler(scheduler.address) from error


def own_address(scheduler: SchedulerPlace) -> str:
    """The address of this machine from which the scheduler is reached: there a worker listens, and nowhere
    else.

    HostError if no name or route leads there.
    """
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            scheduler.host, scheduler.port, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(target)  # sends nothing
            return str(probe.getsockname()[0])
    except OSError as error:
        raise no_scheduler(scheduler.address) from error


def no_scheduler(address: str) -> HostError:
    """The error where no scheduler answers."""
    way = (
        "with a certificate of the same authority"
        if address.startswith("tls:")
        else "or use tls:// if it has certificates"
    )
    return HostError(
        "no dask scheduler answers at this address",
        code="run.scheduler-does-not-answer",
        where=address,
        next_step=f"Start it on that machine, {way}: dask scheduler --host ITS-LAB-ADDRESS",
    )


def _no_certificate(what: str, address: str) -> HostError:
    return HostError(
        what,
        code="run.no-certificate",
        where=address,
        next_step=f"Set them in ~/.config/dask/distributed.yaml; {GUIDE} shows how.",
    )


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
            next_step=f"Install it here: {how_to_get_extra('distributed')}",
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
