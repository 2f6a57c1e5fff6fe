// The reader: the token, which lives as long as this tab and is never part of an address, and what
// the server says about itself.
import { Store } from "./store";

const place = "zeus-token";

function stored(): string {
  try {
    return sessionStorage.getItem(place) ?? "";
  } catch {
    return "";
  }
}

export const token = new Store<string>(stored());

// Why the server refused the latest request for want of a token; empty when it did not.
export const refusal = new Store<string>("");

export function signIn(text: string): void {
  try {
    if (text) sessionStorage.setItem(place, text);
    else sessionStorage.removeItem(place);
  } catch {
    // It holds until the page is closed.
  }
  refusal.value = "";
  token.value = text;
}

export function signOut(): void {
  signIn("");
}

// /app.json: docs/web.md.
export interface ServerDescription {
  program: string;
  version: string;
  features: string[];
  token: "required" | "optional" | "none";
}

// The server that this page came from; undefined until it has answered.
export const server = new Store<ServerDescription | undefined>(undefined);

export function hasFeature(feature: string): boolean {
  return server.value?.features.includes(feature) ?? false;
}
