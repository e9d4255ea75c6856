/**
 * Writes docs/sdk.md, the reference of everything that the package exports, from the compiled declarations and their
 * comments. With `--check` it only says whether the page is up to date.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const parse = (path) => ts.createSourceFile(path, readFileSync(here(path), "utf8"), ts.ScriptTarget.ES2022, true);

/** The modules that an index re-exports, with the names that it takes from each; undefined takes all. */
function reexports(index) {
  const modules = new Map();
  for (const statement of parse(index).statements) {
    if (!ts.isExportDeclaration(statement) || !statement.moduleSpecifier) continue;
    const module = statement.moduleSpecifier.text.replace(/^\.\//, "").replace(/\.js$/, "");
    const names = statement.exportClause?.elements.map(({ name }) => name.text);
    const known = modules.get(module);
    modules.set(module, names === undefined || (modules.has(module) && known === undefined) ? undefined : [...(known ?? []), ...names]);
  }
  return modules;
}

/** What a source file says at its top. */
function headOf(path) {
  const [, text = ""] = /^\/\*\*(.*?)\*\//s.exec(readFileSync(here(path), "utf8")) ?? [];
  return text.replace(/^\s*\* ?/gm, "").replace(/@packageDocumentation/, "").trim();
}

function declarations(path, names) {
  const isWanted = (name) => names === undefined || names.includes(name);
  const exported = parse(path).statements.filter((statement) => statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword));
  const wanted = exported.filter((statement) => isWanted(statement.name?.text ?? statement.declarationList?.declarations[0]?.name.text));
  return wanted.map((statement) => {
    const comments = ts.getJSDocCommentsAndTags(statement).filter(ts.isJSDoc).map((comment) => `${comment.getText()}\n`);
    return comments.slice(-1).join("") + statement.getText().replace(/^export (?:declare )?/, "").replace(/^ {4}#private;\n/gm, "").replace(/^( +)/gm, (indent) => indent.replaceAll("    ", "  "));
  });
}

function section(title, folder, index) {
  const parts = [`## ${title}`];
  for (const [module, names] of reexports(`src/${folder}${index}.ts`)) {
    const found = declarations(`dist/${folder}${module}.d.ts`, names);
    if (found.length > 0) parts.push(`### ${module}`, headOf(`src/${folder}${module}.ts`), "```ts\n" + found.join("\n\n") + "\n```");
  }
  return parts.filter(Boolean).join("\n\n");
}

const page = `# Reference of @prombus/client

Everything that the package exports, with its documentation. How to use it is in
[its README](../sdk/typescript/README.md); \`make sdk-docs\` writes this page from the sources.

${section("`@prombus/client`", "", "index")}

${section("`@prombus/client/sqlite`", "sqlite/", "index")}
`;
const target = here("../../docs/sdk.md");

if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== page) throw new Error("docs/sdk.md is not up to date: run make sdk-docs");
} else {
  writeFileSync(target, page);
}
