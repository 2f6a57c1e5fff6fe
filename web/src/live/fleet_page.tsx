// Many nodes on one page, those that waste most first. A thousand rows are no more work than thirty:
// only those in sight exist.
import { Component } from "preact";
import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, request } from "../app/api";
import { Failure, FigureNumber, Nothing, Numbers, StatusLine } from "../app/parts";
import { powerText, timeText, unknown } from "../app/quantity";
import { columns, foundNodes, Pasts, rowsInSight, sortedNodes, titles, wasteOf } from "./fleet_rows";
import type { Column, Fleet, FleetNode } from "./fleet_rows";

const rowHeight = 46;
const every = 5; // Seconds between two questions.
const staleAfter = 60;

interface State {
  fleet?: Fleet;
  error?: ApiError;
}

// Asks for the fleet as long as somebody looks; the past once, and again after a pause.
function useFleet(pasts: Pasts): State & { reload: () => void } {
  const [state, setState] = useState<State>({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    let asked = 0;
    const ask = async () => {
      const rested = Date.now() - asked > 3 * every * 1000;
      try {
        const fleet = await request<Fleet>(rested ? "v1/fleet?past=true" : "v1/fleet", { signal: abort.signal });
        asked = Date.now();
        pasts.take(fleet);
        setState({ fleet });
      } catch (failure) {
        if (abort.signal.aborted) return;
        const error = failure instanceof ApiError ? failure : new ApiError(0, String(failure));
        setState((before) => (before.fleet ? { fleet: before.fleet, error } : { error }));
      }
      if (!abort.signal.aborted) timer = window.setTimeout(later, every * 1000);
    };
    const later = () => {
      if (document.hidden) document.addEventListener("visibilitychange", ask, { once: true });
      else void ask();
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", ask);
    };
  }, [pasts, turn]);
  return { ...state, reload: () => setTurn(turn + 1) };
}

// Power over the last minutes as a path, from zero to the node's own highest.
function Sparkline({ past }: { past: (number | null)[] }) {
  const [width, height] = [110, 26];
  const most = Math.max(1, ...past.map((watts) => watts ?? 0));
  const step = width / Math.max(Pasts.most - 1, 1);
  let path = "";
  let pen = "M";
  past.forEach((watts, i) => {
    if (watts === null) {
      pen = "M";
      return;
    }
    const x = width - (past.length - 1 - i) * step;
    path += `${pen}${x.toFixed(1)} ${(height - 2 - (watts / most) * (height - 4)).toFixed(1)}`;
    pen = "L";
  });
  return (
    <svg class="sparkline" width={width} height={height} aria-hidden="true">
      <path d={path} fill="none" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round" />
    </svg>
  );
}

function troubleOf(node: FleetNode): string {
  if (node.trouble) return node.trouble;
  if ((node.age_seconds ?? 0) > staleAfter) return `nothing for ${timeText(node.age_seconds)}`;
  return (node.faults ?? []).join(", ");
}

function cellOf(node: FleetNode, column: Column): string {
  if (node.power_watts === undefined) return column === "gpus" ? "" : unknown;
  switch (column) {
    case "gpus":
      return String(node.gpus ?? "");
    case "power":
      return powerText(node.power_watts);
    case "idle":
      return powerText(node.idle_watts ?? 0);
    case "above":
      return powerText(node.above_watts ?? 0);
    case "waste":
      return powerText(wasteOf(node));
    case "temperature":
      return node.temperature_celsius === undefined ? unknown : `${node.temperature_celsius.toFixed(0)} °C`;
    default:
      return "";
  }
}

interface RowProps {
  node: FleetNode;
  index: number;
  past: (number | null)[];
}

// Rows that stay in sight are left as they are until the next answer of the server.
class Row extends Component<RowProps> {
  shouldComponentUpdate(next: RowProps) {
    return next.node !== this.props.node || next.index !== this.props.index;
  }

  render({ node, index, past }: RowProps) {
    const trouble = troubleOf(node);
    return (
      <tr style={{ top: `${index * rowHeight}px` }} aria-rowindex={index + 2}>
        <td class="node">
          {node.url ? <a href={node.url}>{node.name}</a> : node.name}
          <small class={trouble ? "bad" : ""}>{trouble || node.model || node.host}</small>
        </td>
        {columns.slice(1).map((column) => (
          <td class={`number ${column}`}>{cellOf(node, column)}</td>
        ))}
        <td class="past">
          <Sparkline past={past} />
        </td>
      </tr>
    );
  }
}

// The rows to show while the box is scrolled and sized: told once a frame at most, and only when they
// are others than before.
function useRowsInSight(box: RefObject<HTMLElement | null>, count: number) {
  const [sight, setSight] = useState({ scrolled: 0, height: 700 });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let asked = 0;
    const look = () => {
      asked = 0;
      const now = { scrolled: element.scrollTop, height: element.clientHeight };
      setSight((before) => (rowsAt(before, Infinity).first === rowsAt(now, Infinity).first && before.height === now.height ? before : now));
    };
    const ask = () => {
      asked ||= requestAnimationFrame(look);
    };
    element.addEventListener("scroll", ask, { passive: true });
    const sizes = new ResizeObserver(ask);
    sizes.observe(element);
    return () => {
      element.removeEventListener("scroll", ask);
      sizes.disconnect();
      cancelAnimationFrame(asked);
    };
  }, []);
  return rowsAt(sight, count);
}

const rowsAt = (sight: { scrolled: number; height: number }, count: number) => rowsInSight(count, sight.scrolled, sight.height, rowHeight);

function Rows({ nodes, pasts, box }: { nodes: FleetNode[]; pasts: Pasts; box: RefObject<HTMLElement | null> }) {
  const { first, last } = useRowsInSight(box, nodes.length);
  return (
    <tbody>
      {nodes.slice(first, last).map((node, i) => (
        <Row key={node.name} node={node} index={first + i} past={pasts.of(node.name)} />
      ))}
    </tbody>
  );
}

function Totals({ nodes }: { nodes: FleetNode[] }) {
  const known = nodes.filter(({ power_watts, trouble }) => power_watts !== undefined && !trouble);
  const sum = (of: (node: FleetNode) => number | undefined) => known.reduce((all, node) => all + (of(node) ?? 0), 0);
  const power = sum(({ power_watts }) => power_watts);
  const waste = sum(wasteOf);
  const silent = nodes.length - known.length;
  const faulty = nodes.filter(({ faults }) => (faults?.length ?? 0) > 0).length;
  return (
    <Numbers>
      <FigureNumber label="Nodes" text={String(nodes.length)} note={silent > 0 ? `${silent} ${silent === 1 ? "does" : "do"} not answer` : undefined} />
      <FigureNumber label="GPUs" text={String(sum(({ gpus }) => gpus))} note={faulty > 0 ? `faults on ${faulty} ${faulty === 1 ? "node" : "nodes"}` : undefined} />
      <FigureNumber label="Power" value={power} unit="W" />
      <FigureNumber label="Waste" value={waste} unit="W" note={power > 0 ? `${((100 * waste) / power).toFixed(0)} % of the power` : undefined} />
    </Numbers>
  );
}

export function FleetPage() {
  const pasts = useMemo(() => new Pasts(), []);
  const { fleet, error, reload } = useFleet(pasts);
  const [order, setOrder] = useState<{ column: Column; descending: boolean }>({ column: "waste", descending: true });
  const [search, setSearch] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const rows = useMemo(
    () => sortedNodes(foundNodes(fleet?.nodes ?? [], search), order.column, order.descending),
    [fleet, search, order],
  );
  if (!fleet) return error ? <Failure error={error} retry={reload} /> : <Nothing>Loading …</Nothing>;
  // Servers without temperatures have no column of dashes.
  const heated = fleet.nodes.some(({ temperature_celsius }) => temperature_celsius !== undefined);
  const sort = (column: Column) =>
    setOrder({ column, descending: order.column === column ? !order.descending : column !== "node" });
  return (
    <>
      <header class="title">
        <div>
          <h1>Fleet</h1>
          {error ? <StatusLine tone="warn" spoken>This is not up to date: {error.message}.</StatusLine> : <StatusLine tone="good">Live</StatusLine>}
        </div>
        <Totals nodes={fleet.nodes} />
      </header>
      <div class="row find">
        <input type="search" placeholder="Find nodes" aria-label="Find nodes" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        {search && <span class="faint">{rows.length} of {fleet.nodes.length}</span>}
      </div>
      <div class={heated ? "fleet" : "fleet unheated"} ref={box} tabIndex={0} role="region" aria-label="Nodes">
        <table aria-rowcount={rows.length + 1} style={{ height: `${(rows.length + 1) * rowHeight}px` }}>
          <thead>
            <tr>
              {columns.map((column) => (
                <th
                  scope="col"
                  class={column === "node" ? "node" : `number ${column}`}
                  aria-sort={order.column === column ? (order.descending ? "descending" : "ascending") : "none"}
                >
                  <button type="button" onClick={() => sort(column)}>
                    {titles[column]}
                    <i aria-hidden="true">{order.column === column ? (order.descending ? "▼" : "▲") : ""}</i>
                  </button>
                </th>
              ))}
              <th scope="col" class="past">Last 10 min</th>
            </tr>
          </thead>
          <Rows nodes={rows} pasts={pasts} box={box} />
        </table>
        {rows.length === 0 && <p class="nothing">No such node.</p>}
      </div>
    </>
  );
}
