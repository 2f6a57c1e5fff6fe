import { render } from "preact";
import chartStyle from "./charts/chart.css?inline";
import { pageColours } from "./charts/palette";
import { ReportPage } from "./report/page";
import type { Report } from "./report/types";
import "./style.css";
import "./report/report.css";

// Charts bring their own style, which drawings saved from the page take along.
const style = document.createElement("style");
style.textContent = `${pageColours}\n.chart svg, svg.key {\n${chartStyle}\n}`;
document.head.append(style);

const data: unknown = JSON.parse(document.getElementById("report-data")?.textContent ?? "null");
const page = document.getElementById("page")!;

function isReport(value: unknown): value is Report {
  return typeof value === "object" && value !== null && "format" in value && value.format === "zeus-report";
}

if (isReport(data)) render(<ReportPage report={data} />, page);
else page.textContent = "This page holds no report.";
