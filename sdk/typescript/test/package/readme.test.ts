import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { PACKAGE } from "../support/browser.js";
import { Server } from "../support/server.js";

const run = promisify(execFile);
/** Inside the package, so that a snippet's imports are those of a user. */
const FOLDER = join(PACKAGE, "build/snippets");

after(() => rmSync(FOLDER, { recursive: true, force: true }));

test("the snippets of the README are type-checked and run", async (context) => {
  const text = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const snippets = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code ?? "");
  assert.ok(snippets.length >= 8, `${snippets.length} snippets`);
  const server = await Server.start(context, { store: "memory:", config: '[[topics]]\nname = "orders"\npartitions = 16\n' });
  mkdirSync(FOLDER, { recursive: true });
  const files = snippets.map((code, at) => {
    const file = join(FOLDER, `snippet_${at + 1}.ts`);
    writeFileSync(file, code.replaceAll("ws://127.0.0.1:8090", server.url));
    return file;
  });
  const config = { extends: "../../tsconfig.json", compilerOptions: { rootDir: ".", outDir: "js" }, include: ["*.ts"] };
  writeFileSync(join(FOLDER, "tsconfig.json"), JSON.stringify(config));
  await run(join(PACKAGE, "node_modules/.bin/tsc"), ["-p", FOLDER]).catch((error: { stdout: string }) => assert.fail(error.stdout));
  for (const file of files) {
    const { stdout } = await run(process.execPath, [join(FOLDER, "js", basename(file, ".ts") + ".js")], { timeout: 60_000 });
    context.diagnostic(`${file.slice(FOLDER.length + 1)}: ${stdout.trim().split("\n").length} lines`);
  }
});

test("the examples run", async (context) => {
  const server = await Server.start(context, { store: "memory:" });
  const example = (name: string, count: string): Promise<{ stdout: string }> => run(process.execPath, [join(PACKAGE, `build/examples/${name}.js`), server.url, count], { timeout: 60_000 });
  const beats = await example("heartbeat_publisher", "2");
  assert.match(beats.stdout, /beat 1\nbeat 2/);
  const jobs = await example("worker", "6");
  assert.deepEqual(jobs.stdout.trim().split("\n").sort(), [0, 1, 2, 3, 4, 5].map((job) => `job ${job} done at attempt ${job % 3 === 0 ? 2 : 1}`));
});
