#!/usr/bin/env python3
"""Runs the SQL of the user guide: every block of `docs/*.md` marked `sql` must work, those marked `sql refused` must not.

    scripts/docs-sql.py LAKEBED_BINARY

The blocks run beside the table that `lakebed demo --keep` leaves. The last line is `N passed, M failed`.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"^```(sql[^\n]*)\n(.*?)^```$", re.M | re.S)
TIMEOUT_S = 60
CRASHES = (70, 101, -6, -11)


def run(lakebed: Path, folder: Path, text: str, refused: bool) -> str | None:
    """None when the block does what it should, else what happened."""
    command = [lakebed, "-q", "-C", folder, "sql", "-c", text]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"no end in {TIMEOUT_S} s"
    right = done.returncode not in (0, *CRASHES) if refused else done.returncode == 0
    return None if right else f"exit {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"


def main() -> int:
    lakebed = Path(sys.argv[1]).resolve()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        shop = Path(scratch) / "shop"
        subprocess.run([lakebed, "demo", "--keep", shop], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        for page in sorted(DOCS.glob("*.md")):
            for kind, text in BLOCK.findall(page.read_text()):
                wrong = run(lakebed, shop / "lakehouse" / "default", text, refused="refused" in kind)
                passed, failed = passed + (wrong is None), failed + (wrong is not None)
                if wrong:
                    print(f"FAILED {page.name}: {wrong}\n{text}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
