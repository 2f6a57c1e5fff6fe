// The nodes of a fleet, as GET /v1/fleet tells them, and their order.

export interface FleetNode {
  name: string;
  url: string;
  trouble: string;
  host?: string;
  model?: string;
  gpus?: number;
  power_watts?: number;
  idle_watts?: number;
  above_watts?: number;
  temperature_celsius?: number;
  age_seconds?: number;
  faults?: string[];
  past_watts?: (number | null)[];
}

export interface Fleet {
  time: string;
  nodes: FleetNode[];
}

export const columns = ["node", "gpus", "power", "idle", "above", "waste", "temperature"] as const;
export type Column = (typeof columns)[number];

export const titles: Record<Column, string> = {
  node: "Node",
  gpus: "GPUs",
  power: "Power",
  idle: "Without work",
  above: "Above best limit",
  waste: "Waste",
  temperature: "Hottest",
};

export function wasteOf(node: FleetNode): number {
  return (node.idle_watts ?? 0) + (node.above_watts ?? 0);
}

function valueOf(node: FleetNode, column: Column): number | undefined {
  switch (column) {
    case "node":
      return undefined;
    case "gpus":
      return node.gpus;
    case "power":
      return node.power_watts;
    case "idle":
      return node.idle_watts;
    case "above":
      return node.above_watts;
    case "waste":
      return node.power_watts === undefined ? undefined : wasteOf(node);
    case "temperature":
      return node.temperature_celsius;
  }
}

// Nodes that tell nothing stay at the end, whatever the order.
export function sortedNodes(nodes: FleetNode[], column: Column, descending: boolean): FleetNode[] {
  const sign = descending ? -1 : 1;
  return [...nodes].sort((a, b) => {
    if (column !== "node") {
      const [left, right] = [valueOf(a, column), valueOf(b, column)];
      if ((left === undefined) !== (right === undefined)) return left === undefined ? 1 : -1;
      if (left !== undefined && right !== undefined && left !== right) return sign * (left - right);
      return a.name.localeCompare(b.name, "en", { numeric: true });
    }
    return sign * a.name.localeCompare(b.name, "en", { numeric: true });
  });
}

export function foundNodes(nodes: FleetNode[], search: string): FleetNode[] {
  const wanted = search.trim().toLowerCase();
  if (!wanted) return nodes;
  return nodes.filter((node) =>
    [node.name, node.host, node.model, node.trouble, ...(node.faults ?? [])].some((text) => text?.toLowerCase().includes(wanted)),
  );
}

// Rows come and go in groups of so many: most frames of a scroll then change nothing.
const group = 4;

// The groups of rows that are in sight, and two above and below them. A list that became shorter may
// still be scrolled to where its end was: then there are none.
export function rowsInSight(count: number, scrolled: number, height: number, rowHeight: number): { first: number; last: number } {
  const spare = 2;
  const first = Math.floor(scrolled / rowHeight / group) - spare;
  const last = first + Math.ceil(height / rowHeight / group) + 1 + 2 * spare;
  return { first: Math.min(count, Math.max(0, group * first)), last: Math.min(count, group * last) };
}

// The past of each node, continued by every answer that has none.
export class Pasts {
  static readonly most = 60;
  private readonly pasts = new Map<string, (number | null)[]>();
  private ages = new Map<string, number>();

  take(fleet: Fleet): void {
    for (const node of fleet.nodes) {
      if (node.past_watts) {
        this.pasts.set(node.name, node.past_watts.slice(-Pasts.most));
        continue;
      }
      const past = this.pasts.get(node.name) ?? [];
      // A node whose age has grown has told nothing new since.
      const isNew = (node.age_seconds ?? Infinity) <= (this.ages.get(node.name) ?? Infinity);
      if (isNew) past.push(node.trouble ? null : (node.power_watts ?? null));
      if (past.length > Pasts.most) past.shift();
      this.pasts.set(node.name, past);
    }
    this.ages = new Map(fleet.nodes.map(({ name, age_seconds }) => [name, age_seconds ?? Infinity]));
  }

  of(name: string): (number | null)[] {
    return this.pasts.get(name) ?? [];
  }
}
