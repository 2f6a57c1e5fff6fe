// How a column shows its numbers: with as many decimals as each other, and thousands apart.
import type { Table } from "../report/types";
import { textOf } from "./sorting";

const plain = /^-?\d+(\.\d+)?$/;
const mostDecimals = 4;

// The decimals that all numbers of each column get; null where they are not plain numbers, as with
// "44.0 ± 2.9 kJ", or too different.
export function decimalsOf(table: Table): (number | null)[] {
  return table.columns.map((_, column) => {
    let decimals = 0;
    for (const row of table.rows) {
      const text = textOf(row[column]);
      if (text === "") continue;
      if (!plain.test(text)) return null;
      decimals = Math.max(decimals, text.split(".")[1]?.length ?? 0);
    }
    return decimals <= mostDecimals ? decimals : null;
  });
}

// "1,200,000": numbers of five digits and more are easier to read in groups.
export function grouped(text: string): string {
  return text.replace(/(?<![.\d])\d{5,}/g, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ","));
}

export function numberText(text: string, decimals: number | null): string {
  if (decimals === null || !plain.test(text)) return grouped(text);
  const [whole, fraction = ""] = text.split(".") as [string, string?];
  return grouped(decimals > 0 ? `${whole}.${fraction.padEnd(decimals, "0")}` : whole);
}
