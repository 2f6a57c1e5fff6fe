// node embed.js FOLDER SOURCE: writes the files of FOLDER (app.html, app.js, app.css) as C++ to
// SOURCE, each as it is and compressed, with a tag by which browsers know what they have already.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, gzipSync } from "node:zlib";

const [folder, source] = process.argv.slice(2);

// Compilers limit how long one literal may be, so it is cut into parts. Three octal digits end
// where they end, whatever follows.
function literal(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 4000) {
    let text = "";
    for (const byte of bytes.subarray(at, at + 4000))
      text +=
        byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c && byte !== 0x3f
          ? String.fromCharCode(byte)
          : `\\${byte.toString(8).padStart(3, "0")}`;
    parts.push(`"${text}"`);
  }
  return `std::string_view(\n${parts.join("\n")},\n${bytes.length})`;
}

const entries = ["app.html", "app.js", "app.css"].map((name) => {
  const plain = readFileSync(join(folder, name));
  const gzip = gzipSync(plain, { level: constants.Z_BEST_COMPRESSION });
  const tag = createHash("sha256").update(plain).digest("hex").slice(0, 16);
  return `{"${name}", "${tag}", ${literal(plain)}, ${literal(gzip)}},`;
});
writeFileSync(
  source,
  `#include "zeus/web/application_files.h"

namespace zeus::web {

const std::vector<ApplicationFile>& ApplicationFiles() {
  static const std::vector<ApplicationFile> files = {
${entries.join("\n")}
  };
  return files;
}

}  // namespace zeus::web
`,
);
