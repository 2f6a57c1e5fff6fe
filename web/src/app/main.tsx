import { render } from "preact";
import chartStyle from "../charts/chart.css?inline";
import { pageColours } from "../charts/palette";
import { Shell } from "./shell";
import "../style.css";
import "./app.css";
import "../live/live.css";

// A sheet made by the script, since the page's policy forbids style elements.
const sheet = new CSSStyleSheet();
sheet.replaceSync(`${pageColours}\n.chart svg, svg.key {\n${chartStyle}\n}`);
document.adoptedStyleSheets = [sheet];

render(<Shell />, document.getElementById("page")!);
