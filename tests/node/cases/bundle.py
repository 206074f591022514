# SPDX-License-Identifier: Apache-2.0
"""Makes a bundle for runc: bundle.py FOLDER PROGRAM MOUNT [rootless]. The container has the node's /usr, the
checkout, and namespaces of its own of every kind; of flagosd the folder MOUNT at /run/flagos, read-only."""

import json
import os
import subprocess
import sys
from pathlib import Path

folder, program, mount = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
rootless = sys.argv[4:] == ["rootless"]
checkout = os.environ["CHECKOUT"]
root = folder / "rootfs"
for name in ("usr", "proc", "dev", "tmp", "etc", "run/flagos", checkout.lstrip("/")):
    (root / name).mkdir(parents=True, exist_ok=True)
(root / "tmp").chmod(0o1777)
for name in ("bin", "lib", "lib64"):
    if not (root / name).is_symlink():
        (root / name).symlink_to(f"usr/{name}")
subprocess.run(["runc", "spec", "--rootless"], cwd=folder, check=True)
spec = json.loads((folder / "config.json").read_text())
packages = next(Path(checkout).glob(".venv/lib/python3*/site-packages"))
spec["process"] |= {
    "terminal": False,
    "args": ["/usr/bin/python3", "-c", program],
    "cwd": "/",
    "env": [
        "PATH=/usr/bin",
        f"PYTHONPATH={checkout}/python:{packages}:{checkout}/tests/e2e",
        "PYTHONDONTWRITEBYTECODE=1",
        "OMP_NUM_THREADS=1",
        "HOME=/tmp",
        "USER=job",
        *(f"{name}={value}" for name, value in os.environ.items() if name.startswith("FLAGOS_")),
    ],
}
spec["root"]["readonly"] = True


def bind(source, target):
    return {
        "destination": target,
        "source": source,
        "type": "bind",
        "options": ["rbind", "ro", "nosuid", "nodev"],
    }


# The node's /proc is masked by what booted it: a new one may not be mounted from another user namespace.
spec["mounts"] = [
    {"destination": "/proc", "source": "/proc", "type": "bind", "options": ["rbind"]},
    {"destination": "/dev", "source": "tmpfs", "type": "tmpfs", "options": ["nosuid", "mode=755"]},
    {"destination": "/tmp", "source": "tmpfs", "type": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
    bind("/usr", "/usr"),
    bind(checkout, checkout),
    bind(mount, "/run/flagos"),
]
spec["linux"]["namespaces"] = [
    {"type": t} for t in ("pid", "network", "ipc", "uts", "mount", "user", "cgroup")
]
uid, gid = (os.getuid(), os.getgid()) if rootless else (100_000, 100_000)
spec["linux"]["uidMappings"] = [{"containerID": 0, "hostID": uid, "size": 1 if rootless else 65_536}]
spec["linux"]["gidMappings"] = [{"containerID": 0, "hostID": gid, "size": 1 if rootless else 65_536}]
spec["linux"].pop("maskedPaths", None)
spec["linux"].pop("readonlyPaths", None)
if not rootless:
    spec["process"]["user"] = {"uid": 1000, "gid": 1000}  # nobody that the host knows
(folder / "config.json").write_text(json.dumps(spec, indent=1))
