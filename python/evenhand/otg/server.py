# SPDX-License-Identifier: Apache-2.0
"""OTG: the servers of one testbed: HTTPS, HTTP and gRPC side by side, with one tester behind them."""

from __future__ import annotations

import datetime
import ipaddress
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from evenhand.base.errors import RequestError
from evenhand.base.folders import temporary_folder
from evenhand.base.loopback import is_loopback
from evenhand.otg.grpc_front import cannot_listen, start_grpc
from evenhand.otg.refusals import missing_extra
from evenhand.otg.rest import rest_app
from evenhand.otg.service import OtgService
from evenhand.otg.traffic import OtgTraffic
from evenhand.otg.transmission import Transmission
from evenhand.plan import SIDES, SideName
from evenhand.rig import ReferenceDut, Setup, rig_of
from evenhand.run import RunStore

try:
    import uvicorn
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID
except ImportError as missing:
    raise missing_extra(missing) from missing

HTTPS_PORT, GRPC_PORT = 8443, 40051
"""Those that clients of OTG expect."""
LOOPBACK = "127.0.0.1"
CERTIFICATE_DAYS = 30
KEEP_ALIVE_S = 30
LOOK_EVERY_S = 0.02
"""Whether a server answers already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the servers listen. A port of 0 is any that is free; None: not at all."""

    host: str = LOOPBACK
    https_port: int | None = HTTPS_PORT
    http_port: int | None = None
    grpc_port: int | None = GRPC_PORT
    token: str | None = None
    locations: tuple[str, ...] = ()
    """What scripts call the left and the right port, besides their sides and devices."""

    def __post_init__(self) -> None:
        if not (self.host == "localhost" or is_loopback(self.host)) and not self.token:
            raise RequestError(
                f"{self.host} can be reached from other machines, and there is no token",
                code="otg.no-token",
                where="--host",
                next_step="Omit --host for this machine alone, or name a file with a token: --token-file"
                " FILE.",
            )
        if self.locations and len(set(self.locations) - {""}) != len(SIDES):
            raise RequestError(
                f"{','.join(self.locations)} does not name two ports",
                code="otg.wrong-locations",
                where="--locations",
                next_step="Give the left port's name and the right one's: --locations"
                " localhost:5555,localhost:5556.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """Servers that answer."""

    https: str | None
    http: str | None
    grpc: str | None
    transmission: Transmission


@contextmanager
def otg_server(testbed: str, places: Places, *, run: Path, command: list[str]) -> Iterator[RunningServer]:
    """Serve until the block ends; then flows are stopped, and everything is closed.

    Args:
        testbed: Its file, a lab, or `reference`: a router that each configuration starts.
        run: The run file, made when the first trial begins.

    Raises:
        RequestError, HostError: The testbed is wrong, or a port is in use.
    """
    rig = rig_of(testbed)
    known = rig.read() if not rig.takes_reference else None

    def open_setup(stack: ExitStack, traffic: OtgTraffic) -> Setup:
        dut = partial(ReferenceDut, vlans=traffic.vlans)
        setup = stack.enter_context(rig.open(lambda: traffic.plan, dut))
        return _as_named(setup, traffic)

    transmission = Transmission(
        open_setup, run=lambda: RunStore.create(run, command=command), line_rates=_stated_rates(known)
    )
    plans = () if known is None or known.testbed.dut.plan is None else tuple(known.own_plan.split("+"))
    locations = _device_names(known) | dict(zip(places.locations, SIDES, strict=False))
    service = OtgService(transmission, plans=plans, locations=locations, run_name=run.name)
    with ExitStack() as stack:
        stack.callback(transmission.close)
        folder = stack.enter_context(temporary_folder())
        app = rest_app(service, token=places.token)
        tls = {} if places.https_port is None else _make_certificate(folder, places.host)
        https = _serve(stack, app, places.host, places.https_port, "--https-port", **tls)
        http = _serve(stack, app, places.host, places.http_port, "--http-port")
        rpc = None
        if places.grpc_port is not None:
            server, port = start_grpc(service, host=places.host, port=places.grpc_port, token=places.token)
            stack.callback(lambda: server.stop(grace=1.0).wait())
            rpc = f"{_shown(places.host)}:{port}"
        yield RunningServer(https=https, http=http, grpc=rpc, transmission=transmission)


def _device_names(setup: Setup | None) -> dict[str, SideName]:
    """The sides of the testbed's devices: a PCI address, a name of DPDK's, or the host's interface."""
    found: dict[str, SideName] = {}
    if setup is None:
        return found
    for side in SIDES:
        name, *keys = setup.testbed.ports[side].device.split(",")
        interfaces = [key.removeprefix("iface=") for key in keys if key.startswith("iface=")]
        found |= dict.fromkeys([name, *interfaces], side)
    return found


def _stated_rates(setup: Setup | None) -> dict[SideName, float | None]:
    """Line rates that the testbed file states."""
    if setup is None:
        return dict.fromkeys(SIDES)
    return {side: setup.testbed.ports[side].line_rate for side in SIDES}


def _as_named(setup: Setup, traffic: OtgTraffic) -> Setup:
    """The ports with the MACs and VLANs that the configuration names."""
    named: dict[SideName, dict[str, Any]] = {side: dict(traffic.macs.get(side, {})) for side in SIDES}
    for side, vlans in traffic.vlans.items():
        named[side]["vlan"] = vlans
    changed: dict[str, Any] = {
        side: setup.testbed.ports[side].model_copy(update=keys) for side, keys in named.items() if keys
    }
    return replace(setup, testbed=setup.testbed.model_copy(update=changed)) if changed else setup


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _serve(stack: ExitStack, app: Any, host: str, port: int | None, option: str, **tls: str) -> str | None:
    """The address of a server in a thread of its own, which the stack ends; None for no port."""
    if port is None:
        return None
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    stack.callback(listening.close)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        raise cannot_listen(f"{host}:{port}", str(error.strerror), option=option) from error
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level=logging.CRITICAL,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
        **tls,  # type: ignore[arg-type]
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()

    def end() -> None:
        server.should_exit = True
        thread.join()

    stack.callback(end)
    while not server.started and thread.is_alive():
        thread.join(LOOK_EVERY_S)
    if not server.started:
        raise cannot_listen(f"{host}:{port}", "it ended at once", option=option)
    taken = listening.getsockname()[1]
    return f"{'https' if tls else 'http'}://{_shown(host)}:{taken}"


def _make_certificate(folder: Path, host: str) -> dict[str, str]:
    """A certificate of this server alone, which clients of OTG do not check; and its key, which only this
    user can read."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "evenhand otg")])
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    try:
        names.append(x509.IPAddress(ipaddress.ip_address(host)))
    except ValueError:
        names.append(x509.DNSName(host))
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=CERTIFICATE_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_file, certificate_file = folder / "key.pem", folder / "certificate.pem"
    key_file.touch(mode=0o600)
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return {"ssl_keyfile": str(key_file), "ssl_certfile": str(certificate_file)}
