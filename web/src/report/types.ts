// The report inside the page: docs/formats.md, zeus/report/report_files.cc.
import type { Panel } from "../charts/types";

export interface Figure {
  id: string;
  title: string;
  caption: string;
  panels: Panel[];
}

// A number as people read it and as it is; or words.
export type Cell = string | { text: string; value: number | null };

export interface Table {
  id: string;
  title: string;
  caption: string;
  columns: string[];
  rows: Cell[][];
  folded?: boolean;
}

export interface Section {
  title: string;
  text: string;
  tables: Table[];
  figures: Figure[];
}

export interface Report {
  format: "zeus-report";
  version: number;
  title: string;
  subtitle: string;
  findings: string[];
  remarks: string[];
  sections: Section[];
}
