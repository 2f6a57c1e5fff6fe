import type { Entry } from "../components/navigation";
import type { Report } from "./types";

// Names of places in the page, each of them once.
export class Anchors {
  private readonly taken = new Map<string, number>();

  make(wish: string): string {
    const plain = wish.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "part";
    const count = (this.taken.get(plain) ?? 0) + 1;
    this.taken.set(plain, count);
    return count === 1 ? plain : this.make(`${plain}-${count}`);
  }
}

// The contents of a report: tables, then figures of each section, as the page shows them.
export function contentsOf(report: Report): Entry[] {
  const anchors = new Anchors();
  anchors.make("page"); // The page's own.
  return report.sections.map((section, i) => ({
    anchor: anchors.make(section.title || `section-${i + 1}`),
    title: section.title || `Section ${i + 1}`,
    parts: [...section.tables, ...section.figures].map((part) => ({
      anchor: anchors.make(part.id || part.title),
      title: part.title || part.id,
    })),
  }));
}
