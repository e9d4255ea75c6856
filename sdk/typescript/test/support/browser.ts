/** Debian's Chromium, headless, with a profile of its own, and pages served on loopback. */

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { type BrowserContext, chromium } from "playwright-core";
import { cleanUp } from "./cleanup.js";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
/** The package's folder, seen from the compiled test. */
export const PACKAGE = fileURLToPath(new URL("../../../", import.meta.url));

export async function startBrowser(context: Pick<TestContext, "after">): Promise<BrowserContext> {
  if (!existsSync(CHROMIUM)) throw new Error("no Chromium: run make setup, or set CHROMIUM");
  const profile = mkdtempSync(join(tmpdir(), "prombus-sdk-chromium-"));
  const browser = await chromium.launchPersistentContext(profile, { executablePath: CHROMIUM, headless: true, args: FLAGS });
  cleanUp(context, async () => {
    await browser.close();
    rmSync(profile, { recursive: true, force: true });
  });
  return browser;
}

/** The client as one module for browsers. */
export async function bundle(contents = 'export * from "@prombus/client";'): Promise<string> {
  const result = await build({ stdin: { contents, resolveDir: PACKAGE }, bundle: true, minify: true, write: false, format: "esm", platform: "browser", target: "es2022" });
  return result.outputFiles[0]?.text ?? "";
}

/** Serves texts by their path; gives the origin. */
export async function serve(context: Pick<TestContext, "after">, files: Record<string, string>): Promise<string> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const text = files[path];
    const kind = path.endsWith(".js") ? "text/javascript" : "text/html";
    response.writeHead(text === undefined ? 404 : 200, { "content-type": kind }).end(text ?? "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUp(context, () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}
