// Takes the addresses of packages out of package-lock.json: `npm ci` finds them by name, version
// and checksum at whichever registry the machine is set up for.
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(file, "utf8"));
for (const entry of Object.values(lock.packages)) delete entry.resolved;
writeFileSync(file, JSON.stringify(lock, null, 2) + "\n");
