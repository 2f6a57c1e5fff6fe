// Power of the GPUs while the answers arrived. It would unmask the models before the vote.
import { useMemo, useState } from "preact/hooks";
import { Chart } from "../charts/chart";
import { paletteOf } from "../charts/palette";
import type { Panel } from "../charts/types";
import { Legend } from "../components/legend";
import type { SideName } from "./types";
import { sides } from "./types";
import { nameOf } from "./words";

// A sample a second shows next to nothing of a short answer, and a line would pretend otherwise.
const fewestSamples = 4;

const roles: Record<SideName, string> = { a: "zeus", b: "front" };

function panelOf(power: Record<SideName, [number, number | null][]>): Panel {
  return {
    title: "",
    x: { title: "seconds since the prompt", logarithmic: false, from_zero: true },
    y: { title: "power of the GPUs, W", logarithmic: false, from_zero: true },
    series: sides.map((side) => ({
      name: nameOf(side),
      role: roles[side],
      mark: "line",
      x: power[side].map(([at]) => at),
      y: power[side].map(([, watts]) => watts),
    })),
  };
}

export function PowerFigure({ power }: { power: Record<SideName, [number, number | null][]> }) {
  const panel = useMemo(() => panelOf(power), [power]);
  const palette = useMemo(() => paletteOf(panel.series), [panel]);
  const [hidden, setHidden] = useState(new Set<string>());
  const toggle = (name: string) => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  const shown = { ...panel, series: panel.series.filter(({ name }) => !hidden.has(name)) };
  if (sides.every((side) => power[side].length < fewestSamples)) return null;
  return (
    <figure class="power">
      <header>
        <h3>Power while they answered</h3>
      </header>
      <Legend series={panel.series} palette={palette} hidden={hidden} toggle={toggle} />
      <Chart panel={shown} palette={palette} title="Power while they answered" height={220} />
      <figcaption>
        Whole GPUs, once a second, with the work of everybody else on them; the joules above are those of the answers alone.
      </figcaption>
    </figure>
  );
}
