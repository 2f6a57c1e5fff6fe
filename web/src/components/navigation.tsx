import { useEffect, useState } from "preact/hooks";

export interface Entry {
  anchor: string;
  title: string;
  parts: { anchor: string; title: string }[];
}

// Which of the anchors one reads now: the last whose top has passed the upper part of the window.
function useCurrent(anchors: string[]): string {
  const [current, setCurrent] = useState(anchors[0] ?? "");
  useEffect(() => {
    let asked = false;
    const look = () => {
      asked = false;
      let found = anchors[0] ?? "";
      for (const anchor of anchors) {
        const top = document.getElementById(anchor)?.getBoundingClientRect().top ?? Infinity;
        if (top < window.innerHeight * 0.3) found = anchor;
      }
      setCurrent(found);
    };
    const ask = () => {
      if (!asked) requestAnimationFrame(look);
      asked = true;
    };
    addEventListener("scroll", ask, { passive: true });
    return () => removeEventListener("scroll", ask);
  }, [anchors]);
  return current;
}

export function Navigation({ entries, anchors }: { entries: Entry[]; anchors: string[] }) {
  const current = useCurrent(anchors);
  const link = (anchor: string, title: string) => (
    <a href={`#${anchor}`} {...(anchor === current ? { "aria-current": "location" as const } : {})}>
      {title}
    </a>
  );
  return (
    <nav aria-label="Contents">
      <details open={matchMedia("(min-width: 1000px)").matches}>
        <summary>Contents</summary>
        <ul>
          {entries.map((entry) => (
            <li>
              {link(entry.anchor, entry.title)}
              <ul>
                {entry.parts
                  .filter((part) => part.title)
                  .map((part) => (
                    <li>{link(part.anchor, part.title)}</li>
                  ))}
              </ul>
            </li>
          ))}
        </ul>
      </details>
    </nav>
  );
}
