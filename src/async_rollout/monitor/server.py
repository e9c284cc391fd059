"""Serving the monitor: which addresses, which names, and when a token is needed."""

import ipaddress
import socket
import sys
from pathlib import Path

import psutil

from async_rollout.config.errors import ConfigError, Problem
from async_rollout.monitor.places import results_directory

PORT = 8790
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_SHORTEST_TOKEN = 12


def serve(results: Path, host: str, port: int, token: str | None) -> None:
    """Serve until interrupted. Raises ConfigError if it may not or cannot."""
    results_directory(results)
    check_address(host, token)
    try:
        import uvicorn

        from async_rollout.monitor.app import build_app
    except ModuleNotFoundError as error:
        fix = "pip install -e '.[monitor]'"
        raise ConfigError([Problem("monitor", error.name, "is not installed", fix)]) from None
    app = build_app(results, names_of(host), token)
    listener = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    query = "/?token=TOKEN" if token else "/"
    print(
        f"monitor of {results}: http://{shown}:{listener.getsockname()[1]}{query}",
        file=sys.stderr,
        flush=True,
    )
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


def is_loopback(host: str) -> bool:
    """True if only this machine can connect to the address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(host: str, token: str | None) -> None:
    """Raises ConfigError if others could connect without a token."""
    if token is not None and len(token) < _SHORTEST_TOKEN:
        fix = f"{_SHORTEST_TOKEN} characters or more, such as: openssl rand -hex 16"
        raise ConfigError([Problem("--token", None, "too short", fix)])
    if token is None and not is_loopback(host):
        fix = "give --token, or stay on 127.0.0.1 and use ssh -L"
        raise ConfigError([Problem("--host", host, "others can connect to it", fix)])


def names_of(host: str) -> frozenset[str]:
    """Host headers that mean this server, in lower case and without port."""
    if is_loopback(host):
        return _LOOPBACK_NAMES
    names = {host, socket.gethostname(), socket.getfqdn()}
    for addresses in psutil.net_if_addrs().values():
        names |= {
            a.address.partition("%")[0] for a in addresses if a.family in (socket.AF_INET, socket.AF_INET6)
        }
    return _LOOPBACK_NAMES | {f"[{name}]" if ":" in name else name.lower() for name in names}


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)  # before the address is told: it can be opened at once
    except OSError as error:
        listener.close()
        what = error.strerror or str(error)
        raise ConfigError([Problem("--port", port, what, "another --port, or 0 for any")]) from None
    return listener
