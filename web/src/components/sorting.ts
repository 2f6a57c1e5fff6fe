import type { Cell } from "../report/types";

export interface Order {
  column: number;
  direction: "ascending" | "descending";
}

export function textOf(cell: Cell | undefined): string {
  if (cell === undefined) return "";
  return typeof cell === "string" ? cell : cell.text;
}

function valueOf(cell: Cell | undefined): number | null {
  return typeof cell === "object" ? cell.value : null;
}

function compare(a: Cell | undefined, b: Cell | undefined): number {
  const [left, right] = [valueOf(a), valueOf(b)];
  if (left !== null && right !== null) return left - right;
  return textOf(a).localeCompare(textOf(b), "en", { numeric: true });
}

const isVoid = (cell: Cell | undefined) => valueOf(cell) === null && textOf(cell) === "";

// Numbers by value, words by alphabet; cells without anything stay at the end. Rows that are equal
// keep their order.
export function sortedRows(rows: Cell[][], order: Order | null): Cell[][] {
  if (!order) return rows;
  const sign = order.direction === "ascending" ? 1 : -1;
  return [...rows].sort((a, b) => {
    const [left, right] = [a[order.column], b[order.column]];
    if (isVoid(left) !== isVoid(right)) return isVoid(left) ? 1 : -1;
    return sign * compare(left, right);
  });
}
