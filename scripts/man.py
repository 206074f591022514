# SPDX-License-Identifier: Apache-2.0
"""Writes the manual pages from what the programs and the configuration say of themselves.

scripts/man.py BIN_FOLDER TOML OUT_FOLDER
"""

import subprocess
import sys
from pathlib import Path


def escaped(text: str) -> str:
    lines = []
    for line in text.rstrip().splitlines():
        line = line.replace("\\", "\\e").replace("-", "\\-")
        lines.append("\\&" + line if line.startswith((".", "'")) else line)
    return "\n".join(lines)


def page(name: str, section: int, summary: str, sections: dict[str, str], related: str) -> str:
    parts = [f'.TH "{name.upper()}" "{section}" "" "flagos"', f".SH NAME\n{name} \\- {summary}"]
    parts += [f".SH {title}\n.nf\n{escaped(text)}\n.fi" for title, text in sections.items()]
    parts.append(f'.SH "SEE ALSO"\n{related}')
    return "\n".join(parts) + "\n"


def help_of(program: Path, flag: str) -> tuple[str, str]:
    """The description of a program, and the rest of its help."""
    text = subprocess.run([program, flag], capture_output=True, text=True, check=True).stdout
    description, _, rest = text.partition("\nUsage: ")
    usage, _, options = rest.partition("\n")
    return f"{description.strip()}\n\nUsage: {usage}", options.strip("\n")


def main(binaries: Path, configuration: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    description, options = help_of(binaries / "flagosd", "--help")
    (out / "flagosd.8").write_text(
        page(
            "flagosd",
            8,
            "device server for PyTorch",
            {"DESCRIPTION": description, "OPTIONS": options},
            ".BR flagosctl (1), flagosd.toml (5)",
        )
    )
    description, options = help_of(binaries / "flagosctl", "--help-all")
    (out / "flagosctl.1").write_text(
        page(
            "flagosctl",
            1,
            "shows and steers flagosd",
            {"DESCRIPTION": description, '"OPTIONS AND COMMANDS"': options},
            ".BR flagosd (8)",
        )
    )
    text = configuration.read_text().partition("\n")[2]  # without the licence
    (out / "flagosd.toml.5").write_text(
        page("flagosd.toml", 5, "configuration of flagosd", {"DESCRIPTION": text}, ".BR flagosd (8)")
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
