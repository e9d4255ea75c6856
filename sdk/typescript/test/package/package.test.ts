import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { bundle, PACKAGE } from "../support/browser.js";

/** What the browser bundle may have, minified and compressed; 1,300 bytes of it are partitions with their hooks. */
const MAX_BUNDLE_BYTES = 16_500;

let folder = "";
let archive = "";

before(() => {
  folder = mkdtempSync(join(tmpdir(), "prombus-sdk-pack-"));
  archive = join(folder, npm("pack", "--silent", "--pack-destination", folder).trim());
});

after(() => rmSync(folder, { recursive: true, force: true }));

function npm(...args: string[]): string {
  return execFileSync("npm", args, { cwd: PACKAGE, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

function tool(name: string, ...args: string[]): string {
  return execFileSync(join(PACKAGE, "node_modules/.bin", name), args, { cwd: PACKAGE, encoding: "utf8" });
}

test("the archive has exactly what is needed", () => {
  const files = execFileSync("tar", ["-tzf", archive], { encoding: "utf8" }).trim().split("\n");
  const kinds = files.map((file) => file.replace(/^package\//, ""));
  const strays = kinds.filter((file) => !/^(?:package\.json|README\.md|dist\/[a-z_/]+\.(?:js|d\.ts))$/.test(file));
  assert.deepEqual(strays, []);
  for (const needed of ["dist/index.js", "dist/index.d.ts", "dist/sqlite/index.js", "dist/transport/websocket_node.js"]) {
    assert.ok(kinds.includes(needed), needed);
  }
});

test("publint finds nothing", () => {
  assert.match(tool("publint", "run", archive, "--strict"), /All good/);
});

test("the types are not wrong", () => {
  const report = JSON.parse(tool("attw", archive, "--profile", "esm-only", "--format", "json")) as { problems?: unknown; analysis: { problems: { kind: string; resolutionKind?: string }[] } };
  // The package is ESM only: resolving it from CommonJS, or without exports, is not offered.
  const offered = report.analysis.problems.filter(({ kind, resolutionKind }) => kind !== "CJSResolvesToESM" && resolutionKind !== "node10");
  assert.deepEqual(offered, []);
});

test("the browser bundle is small and brings nothing else", async () => {
  const text = await bundle();
  const bytes = gzipSync(text, { level: 9 }).length;
  assert.ok(bytes < MAX_BUNDLE_BYTES, `${bytes} bytes`);
  assert.doesNotMatch(text, /require\(|from"ws"|node:/);
});

test("the reference in the docs is that of these sources", () => {
  execFileSync(process.execPath, [join(PACKAGE, "scripts/reference.mjs"), "--check"], { stdio: ["ignore", "ignore", "pipe"] });
});
