/** All topics; and one of them, where the address names it. */

import { get, send, segment } from "../api.js";
import { h } from "../dom.js";
import * as format from "../format.js";
import type { TopicRow } from "../model.js";
import type { Page, View } from "../page.js";
import { sparkline } from "../parts/chart.js";
import { openDialog } from "../parts/dialog.js";
import { button, field, guard, input } from "../parts/fields.js";
import { command, emptyNotice } from "../parts/notice.js";
import { type Column, VirtualTable } from "../parts/virtual_table.js";
import { withAccess } from "../rights.js";
import { address, go, remember, type Route } from "../router.js";
import { topic } from "./topic.js";

const SEARCH_PAUSE_MS = 200;

export const topics: View = (route) => (route.names[0] === undefined ? list(route) : topic(route));

function list(route: Route): Page {
  const search = input({ type: "search", value: route.query.get("q") ?? "", placeholder: "Filter by name", "aria-label": "Filter topics by name" });
  const columns: Column<TopicRow>[] = [
    { label: "Topic", sort: "topic", cell: (row) => h("a", { href: address("topics", [row.topic]), title: row.topic, class: "name" }, row.topic) },
    { label: "Last minute", sort: "rate", isNumber: true, cell: (row) => (row.per_minute > 0 ? format.rate(row.per_minute / 60) : h("span", { class: "muted" }, "–")) },
    { label: "15 minutes", isWide: true, cell: (row) => sparkline(row.recent, `Events over the last 15 minutes, ${format.plural(row.recent.reduce((sum, value) => sum + value, 0), "event")}`) },
    { label: "Events", sort: "events", isNumber: true, cell: (row) => format.short(row.events) },
    { label: "Size", sort: "bytes", isNumber: true, isWide: true, cell: (row) => format.bytes(row.bytes) },
    { label: "Kept", isWide: true, cell: kept },
    { label: "Last event", isNumber: true, isWide: true, cell: (row) => (row.last_ts === undefined ? h("span", { class: "muted" }, "–") : h("span", { title: format.dateTime(row.last_ts) }, format.ago(row.last_ts))) },
  ];
  const table = new VirtualTable<TopicRow>({
    label: "Topics", columns, sort: route.query.get("sort") ?? "topic", order: route.query.get("order") === "desc" ? "desc" : "asc",
    key: (row) => row.topic,
    load: async (offset, limit, sort, order) => {
      const page = await get<{ total: number; offset: number; topics: TopicRow[] }>("/topics", { offset, limit, sort, order, q: search.value });
      return { total: page.total, offset: page.offset, rows: page.topics };
    },
    onSort: (sort, order) => remember({ sort, order }),
    empty: () => (search.value
      ? emptyNotice(`No topic has “${search.value}” in its name.`)
      : emptyNotice("No topics yet.", h("p", {}, "A topic is made by its first event:"), command(`curl -d '{"text":"hi"}' '${location.origin}/publish/hello'`))),
  });
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      remember({ q: search.value });
      void table.refresh();
    }, SEARCH_PAUSE_MS);
  });
  const make = button("New topic", () => void createTopic(), { class: "button button-primary" });
  withAccess(({ admin }) => guard(make, admin === "nothing" ? "nothing" : "all", "make topics"));
  const element = h("div", { class: "view" }, h("div", { class: "view-head" }, h("h1", {}, "Topics"), h("div", { class: "toolbar" }, search, make)), table.element);
  return { title: "Topics", element, refresh: () => table.refresh(), dispose: () => table.dispose() };
}

function kept({ config }: TopicRow): string {
  const parts = [
    config.retention && `${config.retention}`, config.max_events && `${format.short(config.max_events)} events`,
    config.max_bytes && format.bytes(config.max_bytes), config.compaction && "by key",
  ].filter((part) => part);
  return parts.length > 0 ? parts.join(", ") : "forever";
}

async function createTopic(): Promise<void> {
  const name = input({ required: true, pattern: "[A-Za-z0-9_.\\-]+", maxlength: 249, placeholder: "orders.made" });
  await openDialog({
    title: "New topic", action: "Create",
    body: [field("Name", name, "Segments of letters, digits, _ and - with dots between. Everything else can be set later.")],
    run: async () => {
      await send("PUT", `/topics/${segment(name.value.trim())}`);
      go(address("topics", [name.value.trim()], { tab: "settings" }));
    },
  });
}
