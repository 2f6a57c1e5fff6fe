// node validate.mjs MODELS DOCUMENTS: checks objects of Kubernetes against the schemas of its current version. DOCUMENTS is
// a JSON file with [{name, document}]. The validators of kubernetes-models (in the folder MODELS) check values and
// required fields; they let unknown fields pass, so the types of the same schemas check those, by the rule of TypeScript
// that a literal has no field that its type does not have. Prints a line per mistake; the exit code is 1 if there is one.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [models, file] = process.argv.slice(2);
const require = createRequire(join(models, "package.json"));
const ts = require("typescript");
const mistakes = [];

function modulePath({ apiVersion, kind }) {
  const operator = apiVersion.startsWith("monitoring.coreos.com/");
  return `${operator ? "@kubernetes-models/prometheus-operator" : "kubernetes-models"}/${apiVersion}/${kind}`;
}

// Where a package's own exports do not name a kind, there is no such kind in this version of Kubernetes.
async function checkValues({ name, document }) {
  const { apiVersion, kind } = document;
  const path = join(models, "node_modules", `${modulePath(document)}.js`);
  let loaded;
  try {
    loaded = await import(pathToFileURL(path));
  } catch {
    mistakes.push(`${name}: Kubernetes has no ${kind} in ${apiVersion}`);
    return false;
  }
  try {
    new loaded[kind](document).validate();
  } catch (error) {
    mistakes.push(`${name}: ${error.message}`);
  }
  return true;
}

function checkFields(documents) {
  // Inside of the folder of the models, so that the compiler finds them.
  const folder = mkdtempSync(join(models, "check-"));
  try {
    const files = documents.map(({ document }, index) => {
      const source = join(folder, `document${index}.ts`);
      writeFileSync(source, `import type { I${document.kind} } from "${modulePath(document)}";\n`
        + `export const document: I${document.kind} = ${JSON.stringify(document, null, 1)};\n`);
      return source;
    });
    const program = ts.createProgram(files, {
      noEmit: true, strict: true, skipLibCheck: true, types: [], target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler,
    });
    files.forEach((source, index) => {
      for (const { messageText } of ts.getPreEmitDiagnostics(program, program.getSourceFile(source)))
        mistakes.push(`${documents[index].name}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`);
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const documents = JSON.parse(readFileSync(file, "utf8"));
const known = [];
for (const one of documents) if (await checkValues(one)) known.push(one);
checkFields(known);
if (mistakes.length) console.log(mistakes.join("\n"));
else console.log(`${documents.length} documents are valid`);
process.exitCode = mistakes.length ? 1 : 0;
