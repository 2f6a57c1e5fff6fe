// Addresses of views. They stand behind the # of the page's address, "#/node/gpu:0?hours=2", so
// that every server, also behind a proxy with a path of its own, sends the same page for all.
import { useEffect, useMemo, useState } from "preact/hooks";

export interface Place {
  path: string; // "/node/gpu:0"
  query: URLSearchParams;
}

export function placeOf(hash: string): Place {
  const text = hash.replace(/^#/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  return {
    path: path.startsWith("/") ? path.replace(/(.)\/+$/, "$1") : "/",
    query: new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)),
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// The parameters of `path` if `pattern`, "/jobs/:name", fits it.
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split("/"), path.split("/")];
  if (wanted.length !== given.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [i, part] of wanted.entries()) {
    if (part.startsWith(":")) parameters[part.slice(1)] = decoded(given[i]!);
    else if (part !== given[i]) return undefined;
  }
  return parameters;
}

// The address of a view: linkTo("jobs", name, {tab: "costs"}) is "#/jobs/mnist?tab=costs".
export function linkTo(...parts: (string | Record<string, string>)[]): string {
  let path = "";
  let query = "";
  for (const part of parts) {
    if (typeof part === "string") path += `/${encodeURIComponent(part).replaceAll("%3A", ":")}`;
    else query = new URLSearchParams(part).toString();
  }
  return `#${path || "/"}${query ? `?${query}` : ""}`;
}

export function go(link: string): void {
  location.hash = link;
}

export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const look = () => setHash(location.hash);
    addEventListener("hashchange", look);
    look(); // An effect runs some time after the rendering: the address may have changed meanwhile.
    return () => removeEventListener("hashchange", look);
  }, []);
  return useMemo(() => placeOf(hash), [hash]);
}
