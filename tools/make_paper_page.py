#!/usr/bin/env python3
"""Replays the Zeus paper and writes what comes out into docs/replay-paper.md and its images.

make_paper_page.py ZEUS TRACE_DIR [SEEDS]
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import repository

PAGE = repository.ROOT / "docs" / "replay-paper.md"
IMAGES = repository.ROOT / "docs" / "images" / "paper"
BEGIN, END = "<!-- claims -->", "<!-- end of claims -->"


def claims_table(claims: list[dict]) -> str:
    rows = ["| section | claim | paper | ours | verdict | remark |", "|---|---|---|---|---|---|"]
    for claim in claims:
        cells = (claim[key].replace("|", "\\|")
                 for key in ("section", "claim", "paper", "ours", "verdict", "remark"))
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> int:
    if len(sys.argv) < 3:
        sys.stderr.write(__doc__)
        return 2
    zeus, traces = sys.argv[1:3]
    seeds = sys.argv[3] if len(sys.argv) > 3 else "200"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([zeus, "replay", "paper", "--trace-dir", traces, "--seeds", seeds,
                        "--out", folder], check=True, stdout=subprocess.DEVNULL)
        claims = json.loads((pathlib.Path(folder) / "paper.json").read_text())["claims"]
        IMAGES.mkdir(parents=True, exist_ok=True)
        for drawing in sorted((pathlib.Path(folder) / "figures").glob("figure-*.svg")):
            shutil.copy(drawing, IMAGES / drawing.name)
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{claims_table(claims)}\n\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
