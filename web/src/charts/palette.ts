// The colours of charts, told apart also by those who see no red or green, on light and on dark
// ground. zeus/report/palette.cc has the same ones.
import type { Series } from "./types";

type Colours = Record<string, string>;

const light: Colours = {
  page: "#ffffff",
  ink: "#1b1f24",
  faint: "#57606a",
  rule: "#dfe4ea",
  frame: "#8c959f",
  absent: "#eef1f4",
  "role-default": "#6e7781",
  "role-grid": "#b07400",
  "role-zeus": "#0b62c4",
  "role-knowledge_gradient": "#00806a",
  "role-oracle": "#14171a",
  "role-paper": "#c0267e",
  "role-front": "#c2410c",
  "other-0": "#7a4fb5",
  "other-1": "#8a5a2b",
  "other-2": "#64720a",
  "other-3": "#1c7fae",
  "other-4": "#b8405e",
  "other-5": "#46566b",
};

const dark: Colours = {
  page: "#0f1419",
  ink: "#e6edf3",
  faint: "#9aa4af",
  rule: "#2a313a",
  frame: "#6e7781",
  absent: "#1d242c",
  "role-default": "#9aa4af",
  "role-grid": "#e3a53a",
  "role-zeus": "#5aa9ff",
  "role-knowledge_gradient": "#2fc4a2",
  "role-oracle": "#f5f7fa",
  "role-paper": "#ff7ac2",
  "role-front": "#fb8b5a",
  "other-0": "#b99bff",
  "other-1": "#d2a679",
  "other-2": "#b7c63e",
  "other-3": "#6fd0f5",
  "other-4": "#ff93a8",
  "other-5": "#a9bccf",
};

const others = Object.keys(light).filter((name) => name.startsWith("other-")).length;

function variables(colours: Colours): string {
  return Object.entries(colours)
    .map(([name, colour]) => `--${name}: ${colour};`)
    .join(" ");
}

// The colours as variables of the page, where data-theme may overrule what the reader's system
// prefers, and paper is light.
export const pageColours = `
:root { ${variables(light)} }
@media (prefers-color-scheme: dark) { :root:not([data-theme="light"]) { ${variables(dark)} } }
:root[data-theme="dark"] { ${variables(dark)} }
@media print { :root, :root[data-theme], :root:not([data-theme="light"]) { ${variables(light)} } }
`;

// Style sheets and drawings with the light colours themselves: not every program knows variables.
export function withLiteralColours(text: string): string {
  return text.replace(/var\(--([\w-]+)\)/g, (whole, name: string) => light[name] ?? whole);
}

function keyOf(series: Series): string {
  return series.role || series.name;
}

export type Palette = (series: Series) => string;

// The colour of each series of a figure, as a variable: that of its role, or one of its own in the
// order in which names appear.
export function paletteOf(all: Series[]): Palette {
  const names = new Map<string, string>();
  for (const series of all) {
    const key = keyOf(series);
    if (!names.has(key))
      names.set(key, series.role && `role-${series.role}` in light ? `role-${series.role}` : "");
  }
  let next = 0;
  for (const [key, name] of names)
    if (name === "") names.set(key, `other-${next++ % others}`);
  return (series) => `var(--${names.get(keyOf(series)) ?? "other-0"})`;
}

type Rgb = [number, number, number];

// Pale to dark through one family of hues: its order is seen without telling hues apart.
const heat: Rgb[] = [
  [253, 246, 227],
  [248, 217, 143],
  [236, 166, 66],
  [200, 104, 30],
  [134, 54, 20],
  [66, 22, 12],
];

export function heatColour(share: number): string {
  const place = Math.min(Math.max(share, 0), 1) * (heat.length - 1);
  const below = Math.min(Math.floor(place), heat.length - 2);
  const [from, to] = [heat[below]!, heat[below + 1]!];
  const mixed = from.map((part, i) => Math.round(part + (place - below) * (to[i]! - part)));
  return `rgb(${mixed.join(" ")})`;
}

// Likewise for spans, which must stand out from a dark page, too.
export function spanColour(share: number): string {
  return heatColour(0.84 * Math.min(Math.max(share, 0), 1));
}

// The colour of text on a cell of a heat map.
export function inkOn(share: number): string {
  return share > 0.6 ? "#ffffff" : "#1b1f24";
}
