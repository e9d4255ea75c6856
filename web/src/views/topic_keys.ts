/** A keyed topic as a table, now or at a time, and the history of one key as differences. */

import { get, segment, stream } from "../api.js";
import { h, replace, setText } from "../dom.js";
import * as format from "../format.js";
import type { EventRecord, HistogramReply, KeyState, ListPage } from "../model.js";
import { button, field, input } from "../parts/fields.js";
import { differences } from "../parts/diff.js";
import { jsonView } from "../parts/json_view.js";
import { command, emptyNotice, errorNotice, loading } from "../parts/notice.js";
import { parseExact } from "../exact.js";
import { address, remember, type Route } from "../router.js";
import type { Tab } from "./topic.js";

const PAGE_KEYS = 50;
/** Events of a key that are compared, newest ones. */
const MAX_HISTORY = 100;
/** Columns that are made of the payloads' fields. */
const MAX_COLUMNS = 6;
const SLIDE_PAUSE_MS = 250;

export function keys(topic: string, route: Route): Tab {
  const key = route.query.get("key");
  return key === null ? new KeyTable(topic, route) : keyHistory(topic, key);
}

class KeyTable implements Tab {
  readonly element: HTMLElement;
  readonly #table = h("div", { class: "scroll-x card keys", tabindex: "0", role: "region", "aria-label": "Keys" }, loading());
  readonly #prefix: HTMLInputElement;
  readonly #slider = h("input", { type: "range", min: 0, max: 1000, value: 1000, "aria-label": "Point in time" });
  readonly #when = h("output", { class: "when" }, "now");
  readonly #pager = h("div", { class: "pager" });
  #span: HistogramReply | undefined;
  #offset = 0;
  #timer = 0;

  constructor(readonly topic: string, route: Route) {
    this.#prefix = input({ type: "search", value: route.query.get("prefix") ?? "", placeholder: "beginning of the key" });
    const again = (): void => {
      clearTimeout(this.#timer);
      this.#offset = 0;
      this.#timer = window.setTimeout(() => void this.#load(), SLIDE_PAUSE_MS);
    };
    this.#prefix.addEventListener("input", () => {
      remember({ prefix: this.#prefix.value });
      again();
    });
    this.#slider.addEventListener("input", () => {
      setText(this.#when, this.#at() === undefined ? "now" : format.dateTime(this.#at() ?? 0));
      again();
    });
    this.element = h("div", {}, h("div", { class: "toolbar" }, field("Keys beginning with", this.#prefix),
      h("div", { class: "field time-travel" }, h("span", {}, "As of ", this.#when), this.#slider)), this.#table, this.#pager);
  }

  async refresh(): Promise<void> {
    this.#span = await get<HistogramReply>("/histogram", { topic: this.topic, buckets: 1 });
    if (this.#at() === undefined) await this.#load();
  }

  #at(): number | undefined {
    const part = Number(this.#slider.value) / 1000;
    if (part >= 1 || !this.#span) return undefined;
    return Math.round(this.#span.from_ts + part * (this.#span.to_ts - this.#span.from_ts));
  }

  async #load(): Promise<void> {
    try {
      const at = this.#at();
      const page = await get<ListPage>(`/list/${segment(this.topic)}`, { offset: this.#offset, limit: PAGE_KEYS, prefix: this.#prefix.value, at });
      this.#draw(page);
    } catch (error) {
      replace(this.#table, errorNotice(error));
    }
  }

  #draw(page: ListPage): void {
    if (page.items.length === 0) {
      return replace(this.#table, emptyNotice("No keys here.", h("p", {}, "An event with a key makes a row, the next one with the same key changes it:"),
        command(`curl -d '{"status":"alive"}' '${location.origin}/publish/${this.topic}?key=web1'`)));
    }
    const columns = fieldsOf(page.items);
    const head = ["Key", ...columns, ...(columns.length === 0 ? ["Payload"] : []), "Changed"];
    replace(this.#table, h("table", { class: "table" }, h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, page.items.map((item) => this.#row(item, columns)))));
    const next = page.next;
    replace(this.#pager, h("span", { class: "muted" }, format.plural(page.total, "key")),
      this.#offset > 0 && button("Previous", () => void this.#page(Math.max(0, this.#offset - PAGE_KEYS))), next !== null && button("Next", () => void this.#page(next)));
  }

  #row(item: KeyState, columns: string[]): HTMLElement {
    const payload = item.payload as Record<string, unknown>;
    const cells = columns.length > 0 ? columns.map((name) => h("td", {}, valueText(payload?.[name]))) : [h("td", {}, format.preview(item.payload, 120))];
    return h("tr", {}, h("th", { scope: "row" }, h("a", { href: address("topics", [this.topic], { tab: "keys", key: item.key }) }, item.key)), cells, h("td", { title: format.dateTime(item.ts) }, format.ago(item.ts)));
  }

  async #page(offset: number): Promise<void> {
    this.#offset = offset;
    await this.#load();
  }
}

/** The fields that most payloads have, where they are objects. */
function fieldsOf(items: KeyState[]): string[] {
  const seen = new Map<string, number>();
  for (const { payload } of items) {
    if (payload === null || typeof payload !== "object" || Array.isArray(payload)) return [];
    for (const name of Object.keys(payload)) seen.set(name, (seen.get(name) ?? 0) + 1);
  }
  return [...seen].sort((one, other) => other[1] - one[1]).slice(0, MAX_COLUMNS).map(([name]) => name);
}

function valueText(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : format.preview(value, 80);
}

function keyHistory(topic: string, key: string): Tab {
  const list = h("ol", { class: "key-history" }, loading());
  const element = h("div", {}, h("p", {}, h("a", { href: address("topics", [topic], { tab: "keys" }) }, "All keys"), " / ", h("code", { class: "long-name" }, key)), list);
  const gone = new AbortController();
  void showHistory(topic, key, list, gone.signal).catch((error: unknown) => replace(list, errorNotice(error)));
  return { element, dispose: () => gone.abort() };
}

async function showHistory(topic: string, key: string, list: HTMLElement, signal: AbortSignal): Promise<void> {
  const response = await stream("/export", { topic, key }, signal);
  const lines = (await response.text()).split("\n").filter((line) => line !== "");
  const newest = lines.slice(-MAX_HISTORY - 1).map((line) => parseExact(line) as EventRecord);
  if (newest.length === 0) return replace(list, h("li", {}, emptyNotice("Nothing of this key is kept.")));
  const shown = newest.map((event, at) => {
    const before = newest[at - 1];
    if (!before && lines.length > newest.length) return undefined;
    return h("li", {}, h("div", { class: "key-event" }, h("b", {}, format.dateTime(event.ts)), h("span", { class: "muted" }, ` #${event.seq} · ${format.ago(event.ts)}`)),
      event.payload === null ? h("p", { class: "diff-removed" }, "deleted") : before && before.payload !== null ? differences(before.payload, event.payload) : jsonView(event.payload));
  });
  replace(list, shown.reverse(), lines.length > newest.length && h("li", { class: "muted" }, `${format.count(lines.length - MAX_HISTORY)} earlier changes are not shown.`));
}
