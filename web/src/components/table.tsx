import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Cell, Table } from "../report/types";
import { save, tableCsv } from "./download";
import { sortedRows, textOf } from "./sorting";
import type { Order } from "./sorting";
import { decimalsOf, numberText } from "./numbers";

// Tables from this length can be searched.
const searchableFrom = 16;

function isNumber(cell: Cell | undefined): boolean {
  return typeof cell === "object";
}

// Columns of numbers are aligned right.
function numeric(table: Table): boolean[] {
  return table.columns.map((_, i) => {
    const cells = table.rows.map((row) => row[i]).filter((cell) => cell && textOf(cell) !== "");
    return cells.length > 0 && cells.every(isNumber);
  });
}

// Verdicts are marked: the first words decide.
function verdictOf(column: string | undefined, text: string): string {
  if (column?.toLowerCase() !== "verdict") return "";
  if (/^(reproduced|holds|better|beaten)/i.test(text)) return "verdict good";
  if (/^(within|close|partly|about)/i.test(text)) return "verdict fair";
  if (/^(differs|does not|worse|not )/i.test(text)) return "verdict bad";
  return "";
}

// What is as short as this stays on one line.
const longestUnbroken = 20;

function classOf(column: string | undefined, text: string): string {
  const unbroken = text.length <= longestUnbroken ? "unbroken" : "";
  return `${verdictOf(column, text)} ${unbroken}`.trim();
}

interface HeaderProps {
  name: string;
  order: Order | null;
  column: number;
  number: boolean;
  sort: () => void;
}

function Header({ name, order, column, number, sort }: HeaderProps) {
  const sorted = order?.column === column ? order.direction : "none";
  return (
    <th scope="col" aria-sort={sorted} class={number ? "number" : ""}>
      <button type="button" onClick={sort}>
        {name}
        <i aria-hidden="true">{sorted === "ascending" ? "▲" : sorted === "descending" ? "▼" : ""}</i>
      </button>
    </th>
  );
}

// Details stay folded until somebody asks for them.
function Fold({ folded, rows, children }: { folded: boolean; rows: number; children: ComponentChildren }) {
  if (!folded) return <>{children}</>;
  return (
    <details>
      <summary>{rows} rows</summary>
      {children}
    </details>
  );
}

export function TableView({ table, anchor }: { table: Table; anchor: string }) {
  const [order, setOrder] = useState<Order | null>(null);
  const [search, setSearch] = useState("");
  const numbers = useMemo(() => numeric(table), [table]);
  const decimals = useMemo(() => decimalsOf(table), [table]);
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    const found = table.rows.filter((row) =>
      row.some((cell) => textOf(cell).toLowerCase().includes(wanted)),
    );
    return sortedRows(wanted ? found : table.rows, order);
  }, [table, order, search]);
  const sort = (column: number) => {
    if (order?.column !== column) setOrder({ column, direction: "ascending" });
    else if (order.direction === "ascending") setOrder({ column, direction: "descending" });
    else setOrder(null);
  };
  return (
    <div class="table" id={anchor}>
      <header>
        <h3>{table.title}</h3>
        <div class="tools">
          {table.rows.length >= searchableFrom && (
            <input
              type="search"
              placeholder="Find rows"
              aria-label={`Find rows in ${table.title}`}
              value={search}
              onInput={(event) => setSearch(event.currentTarget.value)}
            />
          )}
          <button
            type="button"
            aria-label={`Download ${table.title} as CSV`}
            onClick={() => save(`${table.id || "table"}.csv`, "text/csv", tableCsv(table))}
          >
            CSV
          </button>
        </div>
      </header>
      <Fold folded={table.folded ?? false} rows={table.rows.length}>
      <div class="wide" tabIndex={0} role="region" aria-label={table.title || "Table"}>
        <table>
          <thead>
            <tr>
              {table.columns.map((name, i) => (
                <Header
                  name={name}
                  order={order}
                  column={i}
                  number={numbers[i] ?? false}
                  sort={() => sort(i)}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr>
                {row.map((cell, i) => (
                  <td class={numbers[i] ? "number" : classOf(table.columns[i], textOf(cell))}>
                    {numbers[i] ? numberText(textOf(cell), decimals[i]!) : textOf(cell)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <p class="nothing">No rows.</p>}
      </div>
      </Fold>
      {table.caption && <p class="caption">{table.caption}</p>}
    </div>
  );
}
