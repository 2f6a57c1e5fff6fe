import { useMemo } from "preact/hooks";
import { FigureView } from "../components/figure";
import { Navigation } from "../components/navigation";
import type { Entry } from "../components/navigation";
import { TableView } from "../components/table";
import { ThemeButton } from "../components/theme";
import { contentsOf } from "./anchors";
import type { Report, Section } from "./types";

function SectionView({ section, entry }: { section: Section; entry: Entry }) {
  const anchor = (index: number) => entry.parts[index]?.anchor ?? "";
  return (
    <section id={entry.anchor}>
      {section.title && <h2>{section.title}</h2>}
      {section.text && <p class="text">{section.text}</p>}
      {section.tables.map((table, i) => (
        <TableView table={table} anchor={anchor(i)} />
      ))}
      {section.figures.map((figure, i) => (
        <FigureView figure={figure} anchor={anchor(section.tables.length + i)} />
      ))}
    </section>
  );
}

function Sentences({ title, sentences }: { title: string; sentences: string[] }) {
  if (sentences.length === 0) return null;
  return (
    <section class={title.toLowerCase()}>
      <h2>{title}</h2>
      <ul class={sentences.length % 3 === 1 ? "pairs" : ""}>
        {sentences.map((sentence) => (
          <li>{sentence}</li>
        ))}
      </ul>
    </section>
  );
}

export function ReportPage({ report }: { report: Report }) {
  const contents = useMemo(() => contentsOf(report), [report]);
  const anchors = useMemo(
    () => contents.flatMap((entry) => [entry.anchor, ...entry.parts.map((part) => part.anchor)]),
    [contents],
  );
  return (
    <>
      <header class="top">
        <div>
          <h1>{report.title}</h1>
          {report.subtitle && <p>{report.subtitle}</p>}
        </div>
        <ThemeButton />
      </header>
      <div class="body">
        {contents.length > 0 && <Navigation entries={contents} anchors={anchors} />}
        <main>
          <Sentences title="Findings" sentences={report.findings} />
          {report.sections.map((section, i) => (
            <SectionView section={section} entry={contents[i]!} />
          ))}
          <Sentences title="Remarks" sentences={report.remarks} />
        </main>
      </div>
    </>
  );
}
