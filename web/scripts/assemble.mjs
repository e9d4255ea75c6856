/**
 * Puts the page together from what tsc has written: the page's modules as `app/`, the SDK's as `sdk/`, with imports that
 * a browser resolves, and the page itself with a preload for every module that it needs at once.
 */

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

const WEB = fileURLToPath(new URL("..", import.meta.url));
const OUT = join(WEB, process.argv[2] ?? "dist");
const COMPILED = join(WEB, "build/js");

const FOLDERS = { app: "web/src", sdk: "sdk/typescript/src" };

rmSync(OUT, { recursive: true, force: true });
for (const [name, from] of Object.entries(FOLDERS)) copyModules(join(COMPILED, from), name);
for (const name of readdirSync(join(WEB, "static"))) cpSync(join(WEB, "static", name), join(OUT, name));
const styles = readdirSync(join(WEB, "styles")).sort().map((name) => readFileSync(join(WEB, "styles", name), "utf8"));
writeFileSync(join(OUT, "app.css"), `${small(styles.join("\n"))}\n`);
const preloads = reachable("app/main.js").map((path) => `    <link rel="modulepreload" href="/ui/@VERSION@/${path}">`);
const page = readFileSync(join(OUT, "index.html"), "utf8");
writeFileSync(join(OUT, "index.html"), page.replace("    <!-- preloads -->", preloads.join("\n")));

function copyModules(folder, prefix) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = `${prefix}/${entry.name}`;
    if (entry.isDirectory()) copyModules(join(folder, entry.name), path);
    else if (entry.name.endsWith(".js")) write(path, rewritten(readFileSync(join(folder, entry.name), "utf8"), path));
  }
}

/** Imports of the SDK from the page, and the one that a package would resolve, as relative paths. */
function rewritten(text, path) {
  const depth = path.split("/").length - 2;
  const socket = posix.relative(posix.dirname(path), "sdk/transport/websocket_browser.js");
  return text
    .replace(/"(?:\.\.\/)+sdk\/typescript\/src\//g, `"${"../".repeat(depth + 1)}sdk/`)
    .replace('"#websocket"', JSON.stringify(socket.startsWith(".") ? socket : `./${socket}`));
}

function write(path, text) {
  mkdirSync(dirname(join(OUT, path)), { recursive: true });
  writeFileSync(join(OUT, path), text);
}

/** A module and everything it imports statically. */
function reachable(start) {
  const found = new Set([start]);
  for (const path of found) {
    const text = readFileSync(join(OUT, path), "utf8");
    for (const [, to] of text.matchAll(/^(?:import|export)[^"';]*?(?:from )?"(\.[^"]+)";/gm)) found.add(posix.join(posix.dirname(path), to));
  }
  return [...found].sort();
}

/** Styles without comments and without spaces that mean nothing. */
function small(css) {
  return css.replace(/\/\*.*?\*\//gs, "").replace(/\s+/g, " ").replace(/ ?([{};,]) ?/g, "$1").trim();
}
