import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import assert from "node:assert/strict";
import { promisify } from "node:util";
import { PACKAGE } from "../support/browser.js";

test("SQLite and the global WebSocket work in a Node that has them", async (context) => {
  const { newerNode } = (await import(join(PACKAGE, "scripts/newer_node.mjs"))) as { newerNode: () => string };
  const file = join(PACKAGE, "build/test/newer/sqlite.js");
  const { NODE_TEST_CONTEXT: _inner, ...env } = process.env;
  const ran = await promisify(execFile)(newerNode(), ["--test", "--test-reporter=tap", file], { env, timeout: 180_000 }).catch((error: { stdout: string }) => error);
  const summary = ran.stdout.split("\n").filter((line) => /^(?:\s*not ok|# (?:tests|pass|fail) )/.test(line));
  context.diagnostic(summary.join(", "));
  assert.match(ran.stdout, /^# fail 0$/m, ran.stdout);
  assert.match(ran.stdout, /^# pass 5$/m);
});
