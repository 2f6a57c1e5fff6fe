// The data from which a chart is drawn: docs/formats.md, zeus/report/figure.h.

export type Mark = "line" | "steps" | "points" | "bars" | "area" | "path" | "rule" | "spans";

// null stands for "not a number".
export type Value = number | null;

export interface Series {
  name: string;
  role: string;
  mark: Mark;
  x: Value[];
  y: Value[];
  low?: Value[];
  high?: Value[];
  labels?: string[];
  labelled?: boolean; // The labels stand beside the points.
  // For spans: from x to until in the lane y, coloured by heat on the panel's scale.
  until?: Value[];
  heat?: Value[];
  span_names?: string[];
}

export interface Axis {
  title: string;
  logarithmic: boolean;
  from_zero: boolean;
  base?: number; // Bars stand on it, and not on zero.
  categories?: string[];
}

export interface HeatMap {
  title: string;
  logarithmic: boolean;
  values: Value[];
}

export interface ColourScale {
  title: string;
  low: Value;
  high: Value;
}

export interface Panel {
  title: string;
  x: Axis;
  y: Axis;
  series: Series[];
  heat_map?: HeatMap;
  colour_scale?: ColourScale;
}
