#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the C++ sources that include no torch header (those take minutes each).

A source that was clean is checked again only when it, a header that it includes or the configuration
changed.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
CLEAN = BUILD / "tidy"
TIDY = "clang-tidy-14"


def sources() -> list[Path]:
    """The handwritten sources that are compiled without libtorch's headers. Their commands go to a
    compilation database of their own, without g++'s precompiled headers, which clang cannot read."""
    entries = [
        {**entry, "command": re.sub(r"-include \S+/cmake_pch\.hxx", "", entry["command"])}
        for entry in json.loads((BUILD / "compile_commands.json").read_text())
        if "torch/include" not in entry["command"] and not Path(entry["file"]).is_relative_to(BUILD)
    ]
    (CLEAN / "compile_commands.json").write_text(json.dumps(entries, indent=1))
    return sorted({Path(entry["file"]) for entry in entries})


def closure(source: Path) -> list[Path]:
    """A source, the project's headers that it includes, directly or not, and the configuration: what its
    findings depend on. Includes are relative to the root; those of generated code stand for all of proto/."""
    found: dict[Path, None] = {}
    todo = [source]
    while todo:
        file = todo.pop()
        if file in found or not file.is_file():
            continue
        found[file] = None
        for name in re.findall(r'^#include "(.+)"$', file.read_text(encoding="utf-8"), re.MULTILINE):
            todo.extend((ROOT / "proto").rglob("*.proto") if ".pb." in name else [ROOT / name])
    return [*found, ROOT / ".clang-tidy", ROOT / "tests" / ".clang-tidy"]


def check(source: Path, stamp: Path) -> str:
    """Returns clang-tidy's findings, empty where there are none."""
    run = subprocess.run(
        [TIDY, "--quiet", "-p", str(CLEAN), str(source)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode == 0 and not run.stdout.strip():
        stamp.touch()
        return ""
    return run.stdout + (run.stderr if run.returncode and not run.stdout.strip() else "")


def main() -> int:
    CLEAN.mkdir(parents=True, exist_ok=True)
    todo: list[tuple[Path, Path]] = []
    for source in sources():
        digest = hashlib.sha256()
        for file in closure(source):
            digest.update(f"{file}\0".encode() + file.read_bytes())
        stamp = CLEAN / digest.hexdigest()
        if not stamp.exists():
            todo.append((source, stamp))
    bad = 0
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 1)) as pool:
        running = {pool.submit(check, source, stamp): source for source, stamp in todo}
        for done, future in enumerate(as_completed(running), 1):
            findings = future.result()
            bad += bool(findings)
            print(f"[{done}/{len(todo)}] {running[future].relative_to(ROOT)}", flush=True)
            if findings:
                print(findings, flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
