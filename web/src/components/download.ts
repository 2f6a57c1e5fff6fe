// Figures and tables as files, made in the browser.
import chartStyle from "../charts/chart.css?inline";
import { withLiteralColours } from "../charts/palette";
import type { Value } from "../charts/types";
import type { Cell, Figure, Table } from "../report/types";

export function save(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name.replace(/[^\w.-]+/g, "-");
  link.click();
  // The browser has begun to read by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function field(value: string | Value | undefined): string {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""').replace(/[\r\n]/g, " ")}"` : text;
}

const row = (fields: (string | Value | undefined)[]) => fields.map(field).join(",") + "\n";

export function figureCsv(figure: Figure): string {
  const spans = figure.panels.some((panel) => panel.series.some(({ mark }) => mark === "spans"));
  const more = spans ? ["until", "heat"] : [];
  let text = row(["panel", "series", "x", "y", "low", "high", "label", ...more]);
  for (const { title, x, y, series, heat_map } of figure.panels) {
    const named = (categories: string[] | undefined, value: Value | undefined) =>
      (typeof value === "number" ? categories?.[value] : undefined) ?? value;
    const columns = x.categories ?? [];
    heat_map?.values.forEach((value, i) => {
      const place = [columns[i % columns.length], y.categories?.[Math.floor(i / columns.length)]];
      text += row([title, heat_map.title, ...place, "", "", value]);
    });
    for (const one of series)
      one.x.forEach((at, i) => {
        const place = [named(x.categories, at), named(y.categories, one.y[i])];
        const point = [title, one.name, ...place, one.low?.[i], one.high?.[i], one.labels?.[i]];
        text += row(spans ? [...point, one.until?.[i], one.heat?.[i]] : point);
      });
  }
  return text;
}

export function tableCsv(table: Table): string {
  const plain = (cell: Cell) => (typeof cell === "string" ? cell : cell.value);
  return row(table.columns) + table.rows.map((cells) => row(cells.map(plain))).join("");
}

// The charts of a figure as the page shows them now, one below the other, with title and legend.
export function figureSvg(figure: Figure, element: Element): string {
  const charts = [...element.querySelectorAll<SVGSVGElement>(".chart > svg:not(.overlay)")];
  const titles = charts.map((chart) => chart.closest(".panel")?.querySelector("h4")?.textContent);
  const keys = [...element.querySelectorAll<HTMLElement>(".legend button[aria-pressed=true]")];
  const width = Math.max(320, ...charts.map((chart) => chart.viewBox.baseVal.width));
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const write = (x: number, y: number, text: string, style: string) => {
    const element = document.createElementNS(drawing.namespaceURI, "text");
    element.setAttribute("x", String(x));
    element.setAttribute("y", String(y));
    element.setAttribute("style", style);
    element.textContent = text;
    drawing.append(element);
  };
  write(12, 24, figure.title, "font-size: 15px; font-weight: 600");
  let top = 46;
  for (const key of keys) {
    write(12, top, `■ ${key.textContent}`, `fill: ${key.style.getPropertyValue("--key")}`);
    top += 18;
  }
  charts.forEach((chart, i) => {
    const title = titles[i] ?? "";
    if (title) write(12, (top += 12), title, "font-weight: 600");
    const copy = chart.cloneNode(true) as SVGSVGElement;
    copy.setAttribute("y", String(top));
    copy.removeAttribute("tabindex");
    drawing.append(copy);
    top += chart.viewBox.baseVal.height + 16;
  });
  drawing.setAttribute("viewBox", `0 0 ${width} ${top}`);
  drawing.setAttribute("width", String(width));
  drawing.setAttribute("height", String(top));
  const style = document.createElementNS(drawing.namespaceURI, "style");
  style.textContent = chartStyle;
  const page = document.createElementNS(drawing.namespaceURI, "rect");
  for (const [name, value] of [["width", width], ["height", top], ["fill", "var(--page)"]] as const)
    page.setAttribute(name, String(value));
  drawing.prepend(style, page);
  return withLiteralColours(new XMLSerializer().serializeToString(drawing));
}
