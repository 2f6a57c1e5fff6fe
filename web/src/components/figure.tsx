import { useMemo, useRef, useState } from "preact/hooks";
import { Chart } from "../charts/chart";
import { paletteOf } from "../charts/palette";
import type { Panel, Series } from "../charts/types";
import type { Figure } from "../report/types";
import { figureCsv, figureSvg, save } from "./download";
import { Legend } from "./legend";

// One of each name, in the order of first appearance.
function legendOf(figure: Figure): Series[] {
  const found = new Map<string, Series>();
  for (const panel of figure.panels)
    for (const series of panel.series)
      if (series.name && !found.has(series.name)) found.set(series.name, series);
  return [...found.values()];
}

function isEmpty(panel: Panel): boolean {
  const shows = (series: Series) =>
    series.x.some((x, i) => x !== null && [series.y, series.low].some((list) => list?.[i] != null));
  const cells = panel.x.categories && panel.y.categories ? panel.heat_map?.values : undefined;
  return !cells?.some((value) => value !== null) && !panel.series.some(shows);
}

function withoutHidden(panel: Panel, hidden: Set<string>): Panel {
  if (hidden.size === 0) return panel;
  return { ...panel, series: panel.series.filter((series) => !hidden.has(series.name)) };
}

function isTimeline(figure: Figure): boolean {
  return figure.panels.some((panel) => panel.series.some(({ mark }) => mark === "spans"));
}

function heightOf(panel: Panel, count: number): number {
  const rows = panel.y.categories?.length ?? 0;
  if (panel.colour_scale) return Math.min(Math.max(rows * 24, 80), 720) + 66;
  return Math.min(Math.max(count === 1 ? 380 : 280, rows * 22 + 90), 760);
}

function PanelView(props: {
  panel: Panel;
  figure: Figure;
  palette: ReturnType<typeof paletteOf>;
  hidden: Set<string>;
}) {
  const { panel, figure, palette, hidden } = props;
  const shown = useMemo(() => withoutHidden(panel, hidden), [panel, hidden]);
  return (
    <div class="panel">
      {panel.title && <h4>{panel.title}</h4>}
      {isEmpty(panel) ? (
        <p class="nothing">No data.</p>
      ) : (
        <Chart
          panel={shown}
          palette={palette}
          title={figure.title}
          height={heightOf(panel, figure.panels.length)}
        />
      )}
    </div>
  );
}

export function FigureView({ figure, anchor }: { figure: Figure; anchor: string }) {
  const element = useRef<HTMLElement>(null);
  const [hidden, setHidden] = useState<Set<string>>(new Set());
  const palette = useMemo(
    () => paletteOf(figure.panels.flatMap((panel) => panel.series)),
    [figure],
  );
  const legend = useMemo(() => legendOf(figure), [figure]);
  const toggle = (name: string) => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  const name = figure.id || "figure";
  // Timelines lie one below the other, so that what happens at the same time does.
  const columns = isTimeline(figure) ? 1 : Math.min(figure.panels.length, 3);
  return (
    <figure id={anchor} class={`panels-${columns}`} ref={element}>
      <header>
        <h3>{figure.title}</h3>
        <div class="tools">
          <button
            type="button"
            aria-label={`Download ${figure.title} as SVG`}
            onClick={() =>
              save(`${name}.svg`, "image/svg+xml", figureSvg(figure, element.current!))
            }
          >
            SVG
          </button>
          <button
            type="button"
            aria-label={`Download the data of ${figure.title} as CSV`}
            onClick={() => save(`${name}.csv`, "text/csv", figureCsv(figure))}
          >
            CSV
          </button>
        </div>
      </header>
      {legend.length > 1 && (
        <Legend
          series={legend}
          palette={palette}
          hidden={hidden}
          toggle={toggle}
          colours={figure.panels.find((panel) => panel.colour_scale)?.colour_scale?.title}
        />
      )}
      {figure.panels.length === 0 && <p class="nothing">No data.</p>}
      <div class="panels">
        {figure.panels.map((panel) => (
          <PanelView panel={panel} figure={figure} palette={palette} hidden={hidden} />
        ))}
      </div>
      {figure.caption && <figcaption>{figure.caption}</figcaption>}
    </figure>
  );
}
