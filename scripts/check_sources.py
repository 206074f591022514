#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what no other linter does: licence headers, length of files, versions that stand in two places."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LICENCE = "SPDX-License-Identifier: Apache-2.0"
SOURCE_SUFFIXES = {".h", ".cc", ".py", ".pyi", ".sh", ".cmake", ".proto"}
SOURCE_NAMES = {"CMakeLists.txt", "Makefile", "run", "pyproject.toml"}
MAX_LINES = 800


def source_files() -> list[Path]:
    """Every file of the checkout that git tracks or would track, and that a person wrote as source."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    files = (ROOT / name for name in listed if name)
    return [f for f in files if f.is_file() and (f.suffix in SOURCE_SUFFIXES or f.name in SOURCE_NAMES)]


def check_file(path: Path) -> list[str]:
    """What is wrong with one file, each as a line to print."""
    name = path.relative_to(ROOT)
    lines = path.read_text(encoding="utf-8").split("\n")
    wrong = []
    if not any(LICENCE in line for line in lines[:3]):
        wrong.append(f"{name}:1: no '{LICENCE}' in the first three lines")
    if len(lines) > MAX_LINES:
        wrong.append(f"{name}: {len(lines)} lines; at most {MAX_LINES}: split it by concept")
    wrong.extend(
        f"{name}:{number}: ends in white space"
        for number, line in enumerate(lines, 1)
        if line != line.rstrip() and path.name != "Makefile"
    )
    return wrong


def check_versions() -> list[str]:
    """Versions that pyproject.toml has to repeat are those of requirements/constraints.txt."""
    constraints = (ROOT / "requirements/constraints.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", constraints, re.MULTILINE))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wrong = [
        f"pyproject.toml: {name}=={version}, but requirements/constraints.txt has {pinned.get(name)}"
        for name, version in re.findall(r'"([\w-]+)==([^"]+)"', project)
        if pinned.get(name) != version
    ]
    cmake = re.search(r"project\(flagos VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    own = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    if not cmake or not own or cmake[1] != own[1]:
        wrong.append("pyproject.toml and CMakeLists.txt differ in the project's version")
    return wrong


def main() -> int:
    wrong = [line for path in source_files() for line in check_file(path)] + check_versions()
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
