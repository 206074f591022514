# SPDX-License-Identifier: Apache-2.0
"""For tests/monitoring/run.sh: a flagosd with an audit log and metrics at a TCP port, and a Prometheus."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from support.daemon import Daemon

ROOT = Path(__file__).resolve().parents[2]


class Served(NamedTuple):
    daemon: Daemon
    port: int

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"


def pytest_sessionstart() -> None:
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    if missing:
        pytest.exit(f"there is no {' and no '.join(missing)}: run `make test-monitoring`", returncode=2)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder, port = tmp_path_factory.mktemp("d"), free_port()
    config = f"[metrics]\nlisten = '127.0.0.1:{port}'\n[audit]\nfile = '{folder}/audit.log'\n"
    daemon = Daemon(folder, devices=2, config=config)
    yield Served(daemon, port)
    daemon.stop()


@pytest.fixture(scope="module")
def prometheus(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prometheus with the example's configuration, but that it scrapes every second."""
    folder = tmp_path_factory.mktemp("prometheus")
    example = ROOT / "deploy" / "monitoring"
    text = (example / "prometheus.yml").read_text()
    for old, new in {"127.0.0.1:9466": served.target, "15s": "1s"}.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "prometheus.yml").write_text(text)
    shutil.copy(example / "flagosd.rules.yml", folder)
    address = f"127.0.0.1:{free_port()}"
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log)
    yield address
    process.terminate()
    process.wait(30)
