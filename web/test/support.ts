/** A real server with data, and headless Chromium that shows its page. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const READY_MS = 30_000;
/** Far beyond what a slow machine needs. */
const PATIENCE_MS = 30_000;

export const SHOTS = fileURLToPath(new URL("../screenshots", import.meta.url));
export const SECRET = "a secret of the tests, long enough";

interface Cleanup {
  after(cleanup: () => Promise<void>): void;
}

export class Server {
  #child: ChildProcess | undefined;

  private constructor(readonly port: number, readonly folder: string, readonly flags: string[]) {}

  /** Starts a server that ends with the test. */
  static async start(context: Cleanup, config = "", flags: string[] = []): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), "prombus-web-"));
    const server = new Server(await freePort(), folder, flags);
    context.after(async () => {
      await server.stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    });
    writeFileSync(join(folder, "prombus.toml"), config);
    await server.run();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts it, again on the same port and store. */
  async run(): Promise<void> {
    const program = [process.env["PROMBUS_BIN"], join(REPOSITORY, "target/debug/prombus")].find((path) => path && existsSync(path));
    assert.ok(program, "no server: set PROMBUS_BIN or run cargo build");
    // The server takes variables that begin with PROMBUS_ for settings.
    const { PROMBUS_BIN: _program, ...env } = process.env;
    const store = `file:${join(this.folder, "data")}`;
    const child = spawn(program, ["serve", "--listen", `127.0.0.1:${this.port}`, "--store", store, "--config", join(this.folder, "prombus.toml"), ...this.flags], { cwd: this.folder, env, stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      let output = "";
      const timer = setTimeout(() => reject(new Error(`the server is not ready: ${output}`)), READY_MS);
      const collect = (chunk: Buffer): void => {
        output = (output + String(chunk)).slice(-4_096);
        if (!output.includes("prombus ready on")) return;
        clearTimeout(timer);
        resolve();
      };
      child.stdout?.on("data", collect);
      child.stderr?.on("data", collect);
      child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${output}`)));
    });
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }

  /** A request that has to succeed; the reply as JSON. */
  async api<R = Record<string, unknown>>(path: string, body?: unknown, method = body === undefined ? "GET" : "POST", token?: string): Promise<R> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (token) headers["authorization"] = `Bearer ${token}`;
    const response = await fetch(this.url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as R;
  }

  /** Events as lines, many at once. */
  async publish(topic: string, events: { payload: unknown; [field: string]: unknown }[]): Promise<void> {
    const body = events.map((event) => JSON.stringify(event)).join("\n");
    const response = await fetch(`${this.url}/publish/${topic}?envelope=1`, { method: "POST", headers: { "content-type": "application/x-ndjson" }, body });
    assert.ok(response.ok, await response.text());
  }
}

/** A browser for one file of tests. */
export async function startBrowser(context: Cleanup): Promise<Browser> {
  assert.ok(existsSync(CHROMIUM), "no Chromium: run make setup, or set CHROMIUM");
  const browser = await chromium.launch({ executablePath: CHROMIUM, headless: true, args: FLAGS });
  context.after(() => browser.close());
  return browser;
}

/** A tab that fails the test on errors of the page and on violations of its policy. */
export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Page & { problems: string[] }> {
  const tab = await (await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })).newPage();
  const problems: string[] = [];
  tab.setDefaultTimeout(PATIENCE_MS);
  tab.on("pageerror", (error) => problems.push(String(error)));
  tab.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("Failed to load resource") && !message.text().includes("WebSocket connection")) problems.push(message.text());
  });
  await tab.goto(url);
  return Object.assign(tab, { problems });
}

/** Waits until a check passes. */
export async function until(what: string, check: () => Promise<boolean> | boolean): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; ) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`it did not come about: ${what}`);
}

/** A JWT of the tests' secret. */
export function jwt(claims: Record<string, unknown>): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1000) + 3_600;
  const head = `${part({ alg: "HS256", typ: "JWT" })}.${part({ exp, ...claims })}`;
  return `${head}.${createHmac("sha256", SECRET).update(head).digest("base64url")}`;
}

/** Orders with a chain of causes, keys, groups of every kind, dead letters and processes. */
export async function fill(server: Server): Promise<void> {
  const now = Date.now();
  const orders = Array.from({ length: 120 }, (_, n) => ({ payload: { order: n + 1, customer: `c-${n % 7}`, total: 12.5 + n, items: [{ sku: "A-1", count: 1 + (n % 3) }] }, key: `order-${n + 1}`, id: `order-${n + 1}`, ts: now - 3_600_000 + n * 29_000, tags: ["#web"], headers: { "x-region": n % 2 ? "eu" : "us" } }));
  await server.publish("orders.made", orders);
  await server.publish("orders.paid", orders.slice(0, 40).map((order, n) => ({ payload: { order: n + 1, by: "card" }, key: order.key, id: `paid-${n + 1}`, caused_by: [order.id], ts: order.ts + 800 })));
  await server.publish("stock.level", Array.from({ length: 60 }, (_, n) => ({ payload: { sku: `A-${n % 5}`, left: 100 - n, place: "north" }, key: `A-${n % 5}`, ts: now - 1_200_000 + n * 15_000 })));
  for (const [group, topic] of [["billing", "orders.made"], ["mail", "orders.made"], ["audit", "orders.paid"]] as const) {
    await server.api("/pull", { topic, group, from: "earliest", max: 1 });
  }
  const { events } = await server.api<{ events: { event: { id: string } }[] }>("/pull", { topic: "orders.made", group: "mail", max: 30 });
  await server.api("/ack", { topic: "orders.made", group: "mail", ids: events.map(({ event }) => event.id) });
  await deadLetters(server, 7);
  for (const [host, name, pid, cpu] of [["web-1", "api", 411, 12.5], ["web-2", "api", 387, 3.1], ["work-1", "mailer", 1203, 44]] as const) {
    await server.api("/publish/heartbeat.received", { pid, name, host, cpu_pct: cpu, mem_mb: 80 + pid / 10 });
  }
}

/** Events that failed once in a group that tries once. */
export async function deadLetters(server: Server, count: number): Promise<void> {
  const topic = "orders.shipped";
  await server.publish(topic, Array.from({ length: count }, (_, n) => ({ payload: { order: n + 1, carrier: "post" }, key: `order-${n + 1}`, id: `shipped-${n + 1}` })));
  await server.api("/pull", { topic, group: "notify", from: "earliest", max: 1 });
  await server.api("/groups", { topic, group: "notify", maxAttempts: 1 }, "PATCH");
  const failed = new Set<string>();
  await until("all have failed", async () => {
    const { events } = await server.api<{ events: { event: { id: string; seq: number } }[] }>("/pull", { topic, group: "notify", max: 100, wait_ms: 500 });
    for (const { event } of events) {
      await server.api("/nack", { topic, group: "notify", id: event.id, reason: event.seq % 3 ? `mail server said 55${event.seq}` : "no address", delay_ms: 0 });
      failed.add(event.id);
    }
    if (failed.size < count) await server.api("/nack", { topic, group: "notify", id: "shipped-1", reason: "no address", delay_ms: 0 }).catch(() => undefined);
    const topics = await server.api<{ topics: { topic: string; events: number }[] }>("/topics");
    return topics.topics.some((info) => info.topic === `dlq.${topic}` && info.events >= count);
  });
}

export async function shot(page: Page, name: string): Promise<void> {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`) });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
