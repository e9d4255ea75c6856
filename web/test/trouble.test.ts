/** What goes wrong: restarts, tokens, hostile and huge contents, floods, clocks. */

import assert from "node:assert/strict";
import { before, test, type TestContext } from "node:test";
import type { Browser } from "playwright-core";
import { jwt, openPage, SECRET, Server, shot, startBrowser, until } from "./support.js";

let browser: Browser;
const cleanups: (() => Promise<void>)[] = [];

before(async () => {
  browser = await startBrowser({ after: (cleanup) => void cleanups.push(cleanup) });
});

test.after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

async function open(context: TestContext, url: string, options = {}): ReturnType<typeof openPage> {
  const page = await openPage(browser, url, options);
  context.after(async () => {
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
  return page;
}

test("a restart is told, and the page goes on by itself", async (context) => {
  const server = await Server.start(context);
  await server.api("/publish/t", 1);
  const page = await open(context, `${server.url}/#/topics`);
  const tail = await open(context, `${server.url}/#/topics/t?tab=tail`);
  await page.getByText("Live", { exact: true }).waitFor();
  await tail.getByText("Waiting for events").waitFor();
  await server.stop("SIGKILL");
  await page.getByText("The server does not answer").waitFor();
  await shot(page, "restart-light");
  await server.run();
  await page.getByText("Connected again.").waitFor();
  await page.getByText("The server does not answer").waitFor({ state: "hidden" });
  await server.api("/publish/fresh", 1);
  await page.getByRole("link", { name: "fresh" }).waitFor();
  await until("the tail is back", async () => {
    await server.api("/publish/t", 2);
    return (await tail.locator(".event").count()) > 0;
  });
});

test("a token is asked for, kept only where one says so, and asked for again when it expires", async (context) => {
  const server = await Server.start(context, `[auth]\njwt_secret = "${SECRET}"\n`);
  const admin = jwt({ sub: "ann", scope: "publish:** subscribe:** admin:**" });
  await server.api("/publish/t", 1, "POST", admin);
  const page = await open(context, server.url);
  await page.getByRole("dialog").waitFor();
  await shot(page, "token-light");
  await page.locator("dialog input[type=password]").fill("nonsense");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.locator(".dialog-error:not(:empty)").waitFor();
  const short = jwt({ sub: "ann", scope: "publish:** subscribe:** admin:**", exp: Math.floor(Date.now() / 1000) + 4 });
  await page.locator("dialog input[type=password]").fill(short);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("ann").waitFor();
  await page.getByRole("link", { name: "Topics" }).click();
  await page.getByRole("link", { name: "t", exact: true }).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0, "a token that is not kept is in no storage");
  await page.getByText("The token has expired").waitFor();
  await page.locator("dialog input[type=password]").fill(admin);
  await page.getByLabel(/Keep it/).check();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("link", { name: "t", exact: true }).waitFor();
  await page.reload();
  await page.getByRole("link", { name: "t", exact: true }).waitFor();
  assert.ok(!page.url().includes(admin), "the token is in no address");
});

test("what the token does not allow is greyed out, or said", async (context) => {
  const server = await Server.start(context, `[auth]\njwt_secret = "${SECRET}"\n`);
  const admin = jwt({ scope: "publish:** subscribe:** admin:**" });
  for (const topic of ["open.t", "secret.t"]) await server.api(`/publish/${topic}`, 1, "POST", admin);
  const page = await open(context, `${server.url}/#/topics`);
  await page.locator("dialog input[type=password]").fill(jwt({ sub: "reader", scope: "subscribe:open.**" }));
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("link", { name: "open.t" }).waitFor();
  assert.equal(await page.getByText("secret.t").count(), 0);
  await page.goto(`${server.url}/#/topics/open.t?tab=settings`);
  const save = page.getByRole("button", { name: "Save" });
  await save.waitFor();
  assert.equal(await save.getAttribute("aria-disabled"), "true");
  assert.match((await save.getAttribute("title")) ?? "", /may not change this topic/);
  await shot(page, "forbidden-light");
  await page.goto(`${server.url}/#/topics/secret.t`);
  await page.getByText("Not allowed").first().waitFor();
  await page.goto(`${server.url}/#/overview`);
  await page.locator(".tile").first().waitFor();
  assert.equal(await page.locator(".charts").isVisible(), false);
});

test("markup in payloads, keys, headers and tags is text", async (context) => {
  const server = await Server.start(context);
  const evil = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;
  await server.publish("t", [{ payload: { [evil]: evil, list: [evil] }, key: evil, headers: { "x-evil": evil }, tags: [evil], id: "evil-1" }]);
  const page = await open(context, `${server.url}/#/topics/t?tab=browse&id=evil-1`);
  await page.locator(".event-detail").waitFor();
  for (const tab of [`keys&key=${encodeURIComponent(evil)}`, "keys"]) {
    await page.goto(`${server.url}/#/topics/t?tab=${tab}`);
    await page.getByText("onerror").first().waitFor();
  }
  assert.equal(await page.evaluate(() => (window as { hacked?: number }).hacked), undefined);
  assert.equal(await page.locator("main img, main script").count(), 0);
});

test("a payload of a megabyte and names of 249 characters fit", async (context) => {
  const server = await Server.start(context);
  const topic = `${"long-name.".repeat(24)}${"x".repeat(9)}`;
  assert.equal(topic.length, 249);
  await server.api(`/publish/${topic}`, { rows: Array.from({ length: 9_000 }, (_, n) => ({ n, text: "y".repeat(90) })) });
  await server.api("/pull", { topic, group: "g".repeat(128), from: "earliest", max: 1 });
  for (const [name, viewport] of [["wide", { width: 1280, height: 800 }], ["phone", { width: 390, height: 844 }]] as const) {
    const page = await open(context, `${server.url}/#/topics`, { viewport });
    await page.getByRole("link", { name: topic }).waitFor();
    await shot(page, `long-topics-${name}`);
    await page.goto(`${server.url}/#/topics/${topic}`);
    await page.locator(".event summary").click();
    await page.locator(".event-detail").waitFor();
    await page.getByRole("button", { name: "Raw" }).click();
    await page.locator("pre.raw").waitFor();
    await shot(page, `long-topic-${name}`);
    await page.goto(`${server.url}/#/groups`);
    await page.locator(".vbody .vrow").waitFor();
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    assert.ok((await page.evaluate(() => document.querySelectorAll("*").length)) < 3_000);
  }
});

test("a thousand events a second in the tail leave the page quick", async (context) => {
  const server = await Server.start(context);
  await server.api("/publish/flood", 0);
  const page = await open(context, `${server.url}/#/topics/flood?tab=tail`);
  await page.getByText("Waiting for events").waitFor();
  for (let batch = 0; batch < 30; batch += 1) {
    await server.publish("flood", Array.from({ length: 100 }, (_, n) => ({ payload: { n: batch * 100 + n } })));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await page.getByText("3,000 seen").waitFor();
  assert.ok((await page.locator(".event").count()) <= 200);
  assert.match((await page.locator("[role=status]").allTextContents()).join(" "), /not drawn/);
  await page.getByRole("link", { name: "Topics", exact: true }).first().click();
  await page.locator(".vbody .vrow").first().waitFor();
});

test("ages are by the server's clock, and a clock that differs is told", async (context) => {
  const server = await Server.start(context);
  await server.api("/publish/t", 1);
  const page = await openPage(browser, "about:blank");
  context.after(() => page.context().close());
  await page.clock.install({ time: Date.now() + 3 * 3_600_000 });
  await page.goto(`${server.url}/#/topics`);
  await page.getByText(/clock is (2 h 59 min|3 h).* ahead of the server/).waitFor();
  const age = await page.locator(".vbody .vrow .vcell").last().textContent();
  assert.match(age ?? "", /now|\d+ s ago|1 min ago/);
});

test("a hidden tab asks for nothing", async (context) => {
  const server = await Server.start(context);
  const page = await open(context, `${server.url}/#/topics`);
  await page.getByText("Live", { exact: true }).waitFor();
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: true, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.getByText("Paused", { exact: true }).waitFor();
  let requests = 0;
  page.on("request", () => (requests += 1));
  await page.waitForTimeout(5_000);
  assert.equal(requests, 0);
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: false, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.getByText("Live", { exact: true }).waitFor();
});

test("everything is reached by the keyboard", async (context) => {
  const server = await Server.start(context);
  await server.api("/publish/t", { deep: { er: 1 } });
  const page = await open(context, `${server.url}/#/topics`);
  await page.locator(".vbody .vrow").waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to content");
  await page.keyboard.press("Enter");
  for (let presses = 0; presses < 12; presses += 1) {
    await page.keyboard.press("Tab");
    if ((await page.evaluate(() => document.activeElement?.textContent)) === "t") break;
  }
  await page.keyboard.press("Enter");
  await page.locator(".event").waitFor();
  await page.locator(".event summary").focus();
  await page.keyboard.press("Enter");
  await page.locator(".event-detail").waitFor();
});
