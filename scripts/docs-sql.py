#!/usr/bin/env python3
"""Runs the SQL of the user guide: every block of `docs/*.md` marked `sql` must work, those marked `sql refused` must not.

    scripts/docs-sql.py LAKEBED_BINARY

The blocks run in the folder that `lakebed demo --keep` leaves. The last line is `N passed, M failed`.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"^```(sql[^\n]*)\n(.*?)^```$", re.M | re.S)


def main() -> int:
    lakebed = Path(sys.argv[1]).resolve()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        shop = Path(scratch) / "shop"
        subprocess.run([lakebed, "demo", "--keep", shop], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        for page in sorted(DOCS.glob("*.md")):
            for kind, text in BLOCK.findall(page.read_text()):
                done = subprocess.run([lakebed, "-C", shop, "sql", "-c", text], stdin=subprocess.DEVNULL, capture_output=True, text=True)
                right = (done.returncode not in (0, 70, 101)) if "refused" in kind else done.returncode == 0
                passed, failed = passed + right, failed + (not right)
                if not right:
                    print(f"FAILED {page.name}: exit {done.returncode}\n{text}{done.stdout[-400:]}{done.stderr[-400:]}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
