#!/usr/bin/env python3
"""Plans the shared pipelines and writes what comes out into the marked tables of docs/pipeline.md.

make_pipeline_page.py ZEUS DATA_DIR

DATA_DIR holds instances/*.json, as ../shared/data/pipeline.
"""
import json
import pathlib
import re
import subprocess
import sys

import repository

PAGE = repository.ROOT / "docs" / "pipeline.md"
SLOWDOWNS = (0, 0.01, 0.02, 0.05, 0.1)

# The excess of the reference's plans over the bound at these slowdowns, in per cent, by spec 1.13;
# None where it has no plan that is fast enough.
REFERENCE_GAPS = {
    "gpt3_a100_4x8": (None, 1.13, 1.00, 0.94, 0.71),
    "gpt3_a100_8x32": (None, 0.74, 1.04, 0.82, 0.63),
    "hist_bert_a40_4x8": (0.00, 0.35, 0.77, 0.39, 0.49),
    "recon_gpt3-xl_a100_4x128": (0.52, 1.04, None, 1.77, None),
    "sosp24_gpt3-175b_a40_8x12": (1.33, 1.68, 1.23, 0.84, 0.26),
    "synth_dvfs_8x32": (None, 0.60, 0.59, 0.38, 0.42),
}

# Perseus, SOSP'24: instance, what, published.
INTRINSIC = [
    ("sosp24_gpt3-175b_a100_sxm_8x12", "GPT-3 175B, A100, 12 microbatches (Table 6)", 15.2),
    ("sosp24_gpt3-175b_a100_sxm_8x24", "GPT-3 175B, A100, 24 microbatches (Table 6)", 14.2),
    ("sosp24_gpt3-175b_a40_8x12", "GPT-3 175B, A40, 12 microbatches (Table 6)", 11.8),
    ("recon_gpt3-xl_a100_4x128", "GPT-3 1.3B, A100, measured (Table 3)", 13.2),
    ("recon_bert-huge-uncased_a100_4x32", "BERT 1.3B, A100, measured (Table 3)", 12.9),
]
STRAGGLER = [
    ("sosp24_gpt3-175b_a100_sxm_8x12", "GPT-3 175B, A100", 27.0),
    ("sosp24_gpt3-175b_a40_8x12", "GPT-3 175B, A40", 23.6),
]
FRONTIER_ENDS = ("sosp24_gpt3-175b_a100_sxm_8x12", (3.456, 5736.3626), (2.818, 6212.8489))


def kind_of(source) -> str:
    kind = source.get("kind", "") if isinstance(source, dict) else str(source)
    if "RECONSTRUCTED" in kind:
        return "reconstructed"
    if "synthetic" in kind:
        return "synthetic"
    return "measured, stages resampled" if "resampled" in kind else "measured"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


class Planner:
    def __init__(self, zeus: str, data: pathlib.Path):
        self.zeus = zeus
        self.data = data
        self.answers: dict[tuple, dict] = {}

    def plan(self, name: str, *flags: str) -> dict:
        key = (name, *flags)
        if key not in self.answers:
            path = self.data / "instances" / f"{name}.json"
            done = subprocess.run([self.zeus, "plan", "--instance", str(path), *flags, "--json"], check=True,
                                  stdout=subprocess.PIPE, text=True)
            self.answers[key] = json.loads(done.stdout)
        return self.answers[key]


def savings_table(planner: Planner, names: list[str]) -> str:
    rows = []
    for name in names:
        answer = planner.plan(name)
        source = json.loads((planner.data / "instances" / f"{name}.json").read_text()).get("source", {})
        first, baseline = answer["slowdowns"][0], answer["baseline"]
        rows.append([f"`{name}`", kind_of(source), f"{answer['pipeline']['computations']}",
                     f"{baseline['time_seconds']:.4g} s, {baseline['energy_joules']:.0f} J",
                     f"{first['energy_joules']:.0f} J", f"**{percent(first['saving'])}**"])
    return table(["instance", "profile", "computations", "all at the highest clock", "plan, 0 % slower", "saving"],
                 rows)


def gaps_table(planner: Planner, names: list[str]) -> str:
    rows = []
    for name in names:
        by_slowdown = {row["slowdown"]: row for row in planner.plan(name)["slowdowns"]}
        gaps = [f"{100 * by_slowdown[slowdown]['gap']:.2f}" for slowdown in SLOWDOWNS]
        published = REFERENCE_GAPS.get(name)
        for i, gap in enumerate(published or ()):
            gaps[i] += " (none)" if gap is None and name != "recon_gpt3-xl_a100_4x128" else ""
            gaps[i] += f" ({gap:.2f})" if gap is not None else ""
        rows.append([f"`{name}`", *gaps])
    return table(["instance"] + [f"{100 * slowdown:.0f} %" for slowdown in SLOWDOWNS], rows)


def published_table(planner: Planner) -> str:
    name, first, last = FRONTIER_ENDS
    points = planner.plan(name, "--cost", "exponential")["frontier"]

    def at(time: float) -> dict:
        return min(points, key=lambda point: abs(point["time_seconds"] - time))

    rows = [[f"GPT-3 175B, A100, 8x12, exponential model: {which} point of the frontier",
             f"{time:.3f} s, {energy:.4f} J", f"{at(time)['time_seconds']:.3f} s, {at(time)['energy_joules']:.4f} J"]
            for which, (time, energy) in (("first published", first), ("last", last))]
    for name, what, share in INTRINSIC:
        rows.append([f"saving without slowdown: {what}", f"{share} %",
                     percent(planner.plan(name)["slowdowns"][0]["saving"])])
    for name, what, share in STRAGGLER:
        replicas = planner.plan(name, "--pace", "1.2x", "--data-parallel", "16")["replicas"]
        rows.append([f"16 pipelines, one straggler at 1.2: {what} (Figure 7)", f"{share} %",
                     f"{percent(replicas['saving'])} (planned as if there were none: "
                     f"{percent(replicas['intrinsic_saving'])})"])
    return table(["result", "published", "ours"], rows)


def rewrite(text: str, mark: str, content: str) -> str:
    pattern = re.compile(f"(<!-- {mark} -->\n).*?(<!-- end of {mark} -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{PAGE} has no place for {mark}")
    return pattern.sub(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", text)


def main() -> int:
    if len(sys.argv) != 3:
        sys.stderr.write(__doc__)
        return 2
    planner = Planner(sys.argv[1], pathlib.Path(sys.argv[2]))
    names = sorted(path.stem for path in (planner.data / "instances").glob("*.json"))
    text = PAGE.read_text()
    text = rewrite(text, "savings", savings_table(planner, names))
    text = rewrite(text, "gaps", gaps_table(planner, names))
    text = rewrite(text, "published", published_table(planner))
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
