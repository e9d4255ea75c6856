/** Every view in light, in dark and on a phone: no accessibility violations, nothing wider than the screen; saved as pictures. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { fill, openPage, Server, shot, startBrowser } from "./support.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const VIEWS: [string, string, string][] = [
  ["overview", "#/overview", ".finding"],
  ["topics", "#/topics", ".vbody .vrow"],
  ["topic-browse", "#/topics/orders.made", ".event"],
  ["topic-event", "#/topics/orders.paid?tab=browse&id=paid-3", ".event-detail"],
  ["topic-tail", "#/topics/orders.made?tab=tail", ".toolbar"],
  ["topic-keys", "#/topics/stock.level?tab=keys", ".table"],
  ["topic-key", "#/topics/stock.level?tab=keys&key=A-1", ".diff"],
  ["topic-groups", "#/topics/orders.made?tab=groups", ".table"],
  ["topic-publish", "#/topics/orders.made?tab=publish", "textarea"],
  ["topic-export", "#/topics/orders.made?tab=export", ".command"],
  ["topic-settings", "#/topics/orders.made?tab=settings", ".danger"],
  ["groups", "#/groups", ".vbody .vrow"],
  ["group", "#/groups/orders.made/billing", ".tile"],
  ["dead-letters", "#/dead-letters", ".table"],
  ["dead-letters-topic", "#/dead-letters/orders.shipped", ".letters"],
  ["processes", "#/processes", ".table"],
  ["unknown-topic", "#/topics/no.such.topic", ".notice-error"],
  ["playground", "#/playground/publish", ".operation"],
  ["playground-frames", "#/playground/frames", ".operation"],
];

const DIALOGS: [string, string, string][] = [
  ["dialog-topic", "#/topics", "New topic"],
  ["dialog-seek", "#/groups/orders.made/billing", "Move cursor…"],
  ["dialog-redrive", "#/dead-letters/orders.shipped", "Redrive all…"],
  ["dialog-delete", "#/topics/orders.made?tab=settings", "Delete…"],
];

const LOOKS = [
  { name: "light", options: { colorScheme: "light" as const } },
  { name: "dark", options: { colorScheme: "dark" as const } },
  { name: "phone", options: { colorScheme: "light" as const, viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true } },
];

test("every view is readable, by eyes and by screen readers", async (context) => {
  const server = await Server.start(context, "[projectors]\nprocess = true\n");
  await fill(server);
  const browser = await startBrowser(context);
  const faults: string[] = [];
  for (const { name: look, options } of LOOKS) {
    // Axe is put in by the browser itself, which the page's policy does not concern.
    const page = await openPage(browser, `${server.url}/ui`, { ...options, bypassCSP: true });
    for (const [name, path, ready] of VIEWS) {
      await page.goto(`${server.url}/ui${path}`);
      await page.waitForSelector(ready);
      if (name === "dead-letters-topic") await page.locator(".letters details summary").first().click();
      faults.push(...(await check(page, `${name}-${look}`)));
    }
    for (const [name, path, opener] of DIALOGS) {
      await page.goto(`${server.url}/ui${path}`);
      await page.getByRole("button", { name: opener }).first().click();
      await page.waitForSelector("dialog[open]");
      faults.push(...(await check(page, `${name}-${look}`)));
      await page.keyboard.press("Escape");
      await page.waitForSelector("dialog[open]", { state: "detached" });
    }
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
  assert.deepEqual(faults, []);
});

test("a server without topics teaches the first commands", async (context) => {
  const server = await Server.start(context);
  const browser = await startBrowser(context);
  const page = await openPage(browser, server.url);
  await page.waitForSelector(".notice-empty");
  assert.equal(await page.locator(".notice-empty .command").count(), 3);
  await shot(page, "empty-overview-light");
  for (const view of ["topics", "groups", "dead-letters", "processes"]) {
    await page.goto(`${server.url}/#/${view}`);
    await page.waitForSelector(".notice-empty");
    await shot(page, `empty-${view}-light`);
  }
  await page.goto(`${server.url}/`);
  const first = await page.locator(".notice-empty .command code").first().textContent();
  assert.equal(first, `curl -d '{"text":"hi"}' '${server.url}/publish/hello'`);
  await server.api("/publish/hello", { text: "hi" });
  await page.waitForFunction(() => !document.querySelector(".notice-empty"), null, { timeout: 30_000 });
  assert.deepEqual(page.problems, []);
});

/** Saves what is shown, and tells what is wrong with it. */
async function check(page: Page, name: string): Promise<string[]> {
  await page.waitForFunction(() => !document.querySelector(".loading"));
  await page.waitForTimeout(150);
  await shot(page, name);
  const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  const found = await violations(page);
  return [...(width > 0 ? [`${name} is ${width} px too wide`] : []), ...found.map((violation) => `${name}: ${violation}`)];
}

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: (options: object) => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe;
    const { violations } = await axe.run({ resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  });
}
