/** Each view clicked through: what it shows is what the API says, and what it does has happened. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, test, type TestContext } from "node:test";
import type { Browser } from "playwright-core";
import { fill, openPage, Server, startBrowser, until } from "./support.js";

let server: Server;
let browser: Browser;
const cleanups: (() => Promise<void>)[] = [];

before(async () => {
  const context = { after: (cleanup: () => Promise<void>) => void cleanups.push(cleanup) };
  server = await Server.start(context, "[projectors]\nprocess = true\n");
  await fill(server);
  browser = await startBrowser(context);
});

test.after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

async function open(context: TestContext, path: string): ReturnType<typeof openPage> {
  const page = await openPage(browser, `${server.url}/${path}`);
  context.after(async () => {
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
  return page;
}

test("the overview has figures, charts and what needs attention, each a link", async (context) => {
  const page = await open(context, "#/overview");
  await page.waitForSelector(".finding");
  const { findings } = await server.api<{ findings: { sentence: string }[] }>("/attention");
  const shown = await page.locator(".finding").allTextContents();
  for (const { sentence } of findings) assert.ok(shown.some((text) => text.toLowerCase().includes(sentence.toLowerCase())), sentence);
  assert.equal(await page.locator(".finding a[href^='#/']").count(), shown.length, "each is a link");
  const { version, projectors } = await server.api<{ version: string; projectors: { name: string; emitted: number }[] }>("/status");
  const row = page.getByRole("row", { name: /^process / });
  assert.match((await row.textContent()) ?? "", new RegExp(`process.*heartbeat\\.received.*process\\.state.*${projectors[0]?.emitted}`));
  const tiles = await page.locator(".tile").allTextContents();
  assert.ok(tiles.some((text) => text.startsWith("HealthOK") && text.endsWith(version)), tiles.join());
  assert.ok(tiles.some((text) => text.startsWith("Projectors1")), tiles.join());
  const { topics } = await server.api<{ topics: unknown[] }>("/topics");
  assert.ok(tiles.some((text) => text.startsWith(`Topics${topics.length}`)), tiles.join());
  await server.publish("stock.level", Array.from({ length: 500 }, (_, n) => ({ payload: { n }, key: "B" })));
  await until("the chart shows what was published", async () => !(await page.locator(".legend li").first().textContent())?.includes("0/s"));
  await page.getByText("are dead letters").click();
  await page.waitForSelector(".letters");
});

test("topics are sorted, filtered and opened", async (context) => {
  const page = await open(context, "#/topics");
  await page.waitForSelector(".vbody .vrow");
  const names = (): Promise<(string | null)[]> => page.locator(".vbody .vrow .name").allTextContents();
  const { topics } = await server.api<{ topics: { topic: string; events: number }[] }>("/topics");
  assert.deepEqual((await names()).sort(), topics.map(({ topic }) => topic).sort());
  await page.getByRole("button", { name: "Events" }).click();
  await until("the largest is first", async () => {
    const rows = await page.locator(".vbody .vrow").evaluateAll((rows) => rows.sort((one, other) => Number(one.getAttribute("aria-rowindex")) - Number(other.getAttribute("aria-rowindex"))).map((row) => row.querySelector(".name")?.textContent));
    return rows[0] === "stock.level" || rows[0] === "orders.made";
  });
  await page.getByLabel("Filter topics").fill("PAID");
  await until("one is left", async () => (await names()).join() === "orders.paid");
  await page.getByRole("link", { name: "orders.paid" }).click();
  await page.waitForSelector(".event");
  assert.equal(await page.locator("h1").textContent(), "orders.paid");
});

test("ten thousand topics scroll as a list of which only the rows in sight exist", async (context) => {
  const many = await Server.start({ after: (cleanup) => context.after(cleanup) });
  const count = Number(process.env["WEB_TOPICS"] ?? 2_000);
  const publish = async (from: number): Promise<void> => {
    for (let n = from; n < count; n += 40) await many.api(`/publish/many.t${String(n).padStart(5, "0")}`, n);
  };
  await Promise.all(Array.from({ length: 40 }, (_, from) => publish(from)));
  const page = await openPage(browser, `${many.url}/#/topics`);
  context.after(() => page.context().close());
  await page.waitForSelector(".vbody .vrow");
  assert.ok((await page.locator(".vbody .vrow").count()) < 80);
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  const last = `many.t${String(count - 1).padStart(5, "0")}`;
  await page.getByRole("link", { name: last }).waitFor();
  assert.ok((await page.locator(".vbody .vrow").count()) < 80);
  assert.equal(await page.getByRole("table").getAttribute("aria-rowcount"), String(count + 1));
  assert.deepEqual(page.problems, []);
});

test("events are browsed by time, position, id and key, and causes followed both ways", async (context) => {
  const page = await open(context, "#/topics/orders.made");
  await page.waitForSelector(".event");
  assert.equal(await page.locator(".event-seq").first().textContent(), "#120");
  assert.equal(await page.locator(".event").count(), 50);
  await page.getByRole("button", { name: "Older" }).click();
  await until("the next page", async () => (await page.locator(".event-seq").first().textContent()) === "#70");
  const plot = page.locator(".histogram-plot");
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + 1, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 4, box.y + 20);
  await page.mouse.up();
  await until("the first quarter", async () => (await page.locator(".event-seq").first().textContent()) === "#1");
  assert.ok((await page.locator(".event").count()) <= 32);
  await page.getByLabel("Show", { exact: true }).selectOption("id");
  await page.getByLabel("Value").fill("order-7");
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await page.waitForSelector(".event-detail");
  await page.getByRole("link", { name: "orders.paid #7" }).click();
  await page.getByRole("link", { name: "orders.made #7" }).waitFor();
  await page.goto(`${server.url}/#/topics/orders.paid`);
  await page.locator(".event summary").first().click();
  await page.getByRole("link", { name: "order-40", exact: true }).first().waitFor();
  await page.locator(".facts").getByRole("link", { name: "order-40", exact: true }).last().click();
  await until("the cause is shown in its own topic", async () => (await page.locator("h1").textContent()) === "orders.made");
  await page.getByRole("link", { name: "orders.paid #40" }).waitFor();
  await page.goto(`${server.url}/#/topics/orders.paid`);
  await page.locator(".event summary").nth(1).click();
  await page.getByRole("button", { name: "Causes and effects" }).click();
  await page.getByRole("link", { name: "orders.made #39" }).waitFor();
  await page.goto(`${server.url}/#/topics/orders.made?tab=browse&id=none`);
  await page.getByText("holds no event with that id").waitFor();
});

test("a test event is published, and tailed over the socket, filtered and paused", async (context) => {
  const tail = await open(context, "#/topics/tail.me?tab=tail");
  await server.api("/publish/tail.me", { first: true });
  await tail.reload();
  await tail.getByText("Waiting for events").waitFor();
  const page = await open(context, "#/topics/tail.me?tab=publish");
  await page.getByLabel("Payload").fill('{"hello": "tail", "big": 9007199254740993}');
  await page.getByLabel("Key").fill("k1");
  await page.getByRole("button", { name: "Publish" }).click();
  await page.getByText("Published", { exact: true }).waitFor();
  const { events } = await server.api<{ events: { payload: unknown; key: string }[] }>("/replay?topic=tail.me&from=seq&seq=2");
  assert.equal(events[0]?.key, "k1");
  await tail.locator(".event").waitFor();
  await tail.locator(".event summary").click();
  assert.match((await tail.locator(".payload").textContent()) ?? "", /tail/);
  await page.getByLabel("Payload").fill("{");
  await page.getByRole("button", { name: "Publish" }).click();
  await page.getByText("The payload is not JSON").waitFor();
  await tail.getByLabel("Filter").fill("needle");
  await server.publish("tail.me", [{ payload: "hay" }, { payload: "a needle" }]);
  await tail.getByText("1 match").or(tail.getByText("2 match")).first().waitFor();
  assert.equal(await tail.locator(".event").count(), 2);
  await tail.getByRole("button", { name: "Pause" }).click();
  await server.publish("tail.me", [{ payload: "another needle" }]);
  await tail.getByText("4 seen").or(tail.getByText("5 seen")).first().waitFor();
  assert.equal(await tail.locator(".event").count(), 2);
  await page.goto(`${server.url}/#/topics/tail.me?tab=browse&seq=2`);
  await page.locator(".event summary").first().click();
  assert.match((await page.locator(".payload").first().textContent()) ?? "", /9007199254740993/);
});

test("keys are a table, now and as it was, and one key a list of changes", async (context) => {
  const page = await open(context, "#/topics/stock.level?tab=keys");
  await page.waitForSelector(".table");
  const { items } = await server.api<{ items: { key: string; payload: { left?: number } }[] }>("/list/stock.level?limit=50");
  for (const { key } of items) await page.getByRole("link", { name: key, exact: true }).waitFor();
  const before = await page.locator("tbody").textContent();
  await page.locator("input[type=range]").fill("500");
  await until("the table is another", async () => (await page.locator("tbody").textContent()) !== before);
  const when = await page.locator(".when").textContent();
  assert.match(when ?? "", /^\d{4}-/);
  await page.getByRole("link", { name: "A-1", exact: true }).click();
  await page.waitForSelector(".diff");
  assert.equal(await page.locator(".key-history > li").count(), 12);
  assert.match((await page.locator(".diff").first().textContent()) ?? "", /left/);
});

test("settings are saved, a topic is purged and deleted", async (context) => {
  await server.publish("to.change", [{ payload: 1 }, { payload: 2 }]);
  const page = await open(context, "#/topics/to.change?tab=settings");
  await page.getByLabel("Retention").fill("3d");
  await page.getByLabel(/Compaction/).check();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The settings were saved.").waitFor();
  const info = await server.api<{ config: object; events: number }>("/topics/to.change");
  assert.deepEqual(info.config, { durability: "fsync", retention: "3d", compaction: true });
  await page.getByLabel("Retention").fill("soon");
  await page.getByLabel("Retention").evaluate((input: HTMLInputElement) => input.removeAttribute("pattern"));
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".notice-error").waitFor();
  await page.getByRole("button", { name: "Purge…" }).click();
  await page.getByRole("button", { name: "Purge", exact: true }).click();
  await page.getByText("The topic was purged.").waitFor();
  assert.equal((await server.api<{ events: number }>("/topics/to.change")).events, 0);
  await page.getByRole("button", { name: "Delete…" }).click();
  await page.getByLabel("Type its name").fill("wrong");
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("This is not the name of the topic.").waitFor();
  await page.getByLabel("Type its name").fill("to.change");
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("was deleted").waitFor();
  assert.equal((await fetch(`${server.url}/topics/to.change`)).status, 404);
});

test("an export is a file with every event", async (context) => {
  const page = await open(context, "#/topics/orders.paid?tab=export");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n");
  assert.equal(lines.length, 40);
});

test("a group says why it does not flow; its cursor is moved after a preview; it is changed and removed", async (context) => {
  const page = await open(context, "#/groups");
  await page.getByRole("link", { name: /billing/ }).click();
  const { sentence } = await server.api<{ sentence: string }>("/explain?topic=orders.made&group=billing");
  await until("the sentence is there", async () => (await page.locator(".why").textContent())?.toLowerCase().startsWith(sentence.slice(0, 20).toLowerCase()) ?? false);
  await page.getByRole("button", { name: "Move cursor…" }).click();
  await page.getByLabel("Move the cursor to").selectOption("seq");
  await page.getByLabel("Value").fill("100");
  await page.getByText(/99 unsettled events would be skipped/).waitFor();
  assert.equal((await server.api<{ group: { cursor: number } }>("/explain?topic=orders.made&group=billing")).group.cursor, 0);
  await page.getByRole("button", { name: "Move", exact: true }).click();
  await page.getByText("The cursor is at 99.").waitFor();
  assert.equal((await server.api<{ group: { cursor: number } }>("/explain?topic=orders.made&group=billing")).group.cursor, 99);
  await page.getByRole("button", { name: "Change…" }).click();
  await page.getByLabel("Most attempts").fill("9");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The group was changed.").waitFor();
  assert.equal((await server.api<{ group: { max_attempts: number } }>("/explain?topic=orders.made&group=billing")).group.max_attempts, 9);
  await page.getByRole("button", { name: "Remove…" }).click();
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByText("Group billing was removed.").waitFor();
  const { groups } = await server.api<{ groups: { group: string }[] }>("/groups?topic=orders.made");
  assert.ok(!groups.some(({ group }) => group === "billing"));
});

test("a group is paused and resumed, and a seek is undone", async (context) => {
  const cursor = async (): Promise<number> => (await server.api<{ group: { cursor: number } }>("/explain?topic=orders.paid&group=audit")).group.cursor;
  await server.api("/pull", { topic: "orders.paid", group: "audit", max: 1 });
  const page = await open(context, "#/groups/orders.paid/audit");
  await page.locator(".tile").first().waitFor();
  await page.getByRole("cell", { name: /^for / }).waitFor();
  const isPaused = async (): Promise<boolean> => (await server.api<{ groups: { group: string; paused?: boolean }[] }>("/groups?topic=orders.paid")).groups.find(({ group }) => group === "audit")?.paused === true;
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("nothing is delivered until it is resumed").waitFor();
  assert.equal(await isPaused(), true);
  await page.locator("h1 .badge", { hasText: "paused" }).waitFor();
  assert.deepEqual((await server.api<{ events: unknown[] }>("/pull", { topic: "orders.paid", group: "audit", max: 5, wait_ms: 200 })).events, []);
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("Group audit goes on.").waitFor();
  assert.equal(await isPaused(), false);
  const undo = page.getByRole("button", { name: "Undo move…" });
  await undo.click();
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await page.locator(".dialog-error:not(:empty)").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  const before = await cursor();
  await server.api("/cursors", { topic: "orders.paid", group: "audit", from: "latest" });
  assert.equal(await cursor(), 40);
  await undo.click();
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await page.getByText(`The cursor is back at ${before}.`).waitFor();
  assert.equal(await cursor(), before);
});

test("dead letters are grouped, shown with their attempts, edited, redriven and removed", async (context) => {
  const page = await open(context, "#/dead-letters/orders.shipped");
  await page.waitForSelector(".letters");
  assert.equal(await page.locator(".letters").count(), 2);
  await page.locator(".letters details summary").first().click();
  await page.locator(".timeline li").first().waitFor();
  await page.getByRole("button", { name: "Edit and redrive…" }).click();
  await page.getByLabel("Payload").fill('{"order": 99, "edited": true}');
  await page.getByText("1 letter would be sent").waitFor();
  await page.getByRole("button", { name: "Redrive", exact: true }).click();
  await page.getByText("1 letter was redriven.").waitFor();
  const { events } = await server.api<{ events: { payload: { edited?: boolean } }[] }>("/replay?topic=orders.shipped&from=earliest");
  assert.ok(events.at(-1)?.payload.edited);
  await page.getByRole("button", { name: "Remove all…" }).last().click();
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByText(/letters? (was|were) removed/).waitFor();
  await until("a group of letters is gone", async () => (await page.locator(".letters").count()) <= 1);
});

test("processes are listed with what they use", async (context) => {
  const page = await open(context, "#/processes");
  await page.waitForSelector(".table");
  assert.equal(await page.locator("tbody tr").count(), 3);
  assert.match((await page.locator("tbody").textContent()) ?? "", /mailer.*work-1.*44\.0 %/);
  await server.publish("heartbeat.received", [7, 9].map((cpu) => ({ payload: { pid: 411, name: "api", host: "web-1", cpu_pct: cpu, mem_mb: 90 } })));
  await page.getByText("9.0 %").waitFor();
  await page.reload();
  const line = page.getByRole("img", { name: "CPU, now 9.0 %" }).locator(".spark-line");
  await until("what came before is drawn too", async () => ((await line.getAttribute("d")) ?? "").split("L").length >= 3);
});

test("the playground explains and runs requests and frames", async (context) => {
  const page = await open(context, "#/playground/publish");
  await page.getByRole("button", { name: "Send POST" }).click();
  await page.locator(".result .badge", { hasText: "200" }).waitFor();
  assert.match((await page.locator(".snippets").textContent()) ?? "", /curl.*bus\.publish\("hello".*Client::connect/s);
  const { paths } = await server.api<{ paths: Record<string, object> }>("/openapi.json");
  const count = Object.values(paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0);
  assert.equal(await page.locator(".operations li").count(), count + 1);
  await page.goto(`${server.url}/#/playground/history`);
  await page.getByLabel("follow (optional)").fill("1");
  await page.getByRole("button", { name: "Send GET" }).click();
  await page.getByText("it goes on").waitFor();
  await page.goto(`${server.url}/#/playground/frames`);
  await page.getByRole("button", { name: "Send frame" }).click();
  await page.getByText('"op":"OK"').waitFor();
});
