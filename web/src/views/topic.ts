/** One topic: a head with its figures, and tabs. */

import { ApiError, get, segment } from "../api.js";
import { h, replace, setText } from "../dom.js";
import * as format from "../format.js";
import type { TopicInfo } from "../model.js";
import type { Page } from "../page.js";
import { errorNotice } from "../parts/notice.js";
import { address, type Route } from "../router.js";

/** A tab's content. */
export interface Tab {
  element: HTMLElement;
  refresh?(): Promise<void> | void;
  dispose?(): void;
}

type MakeTab = (topic: string, route: Route) => Tab;

const TABS: { name: string; label: string; load: () => Promise<MakeTab> }[] = [
  { name: "browse", label: "Browse", load: async () => (await import("./topic_browse.js")).browse },
  { name: "tail", label: "Live tail", load: async () => (await import("./topic_tail.js")).tail },
  { name: "keys", label: "Keys", load: async () => (await import("./topic_keys.js")).keys },
  { name: "groups", label: "Groups", load: async () => (await import("./topic_groups.js")).topicGroups },
  { name: "publish", label: "Publish", load: async () => (await import("./topic_publish.js")).publish },
  { name: "export", label: "Export", load: async () => (await import("./topic_publish.js")).exportTab },
  { name: "settings", label: "Settings", load: async () => (await import("./topic_settings.js")).settings },
];

export function topic(route: Route): Page {
  const name = route.names[0] ?? "";
  const chosen = TABS.find((tab) => tab.name === route.query.get("tab")) ?? TABS[0]!;
  const body = h("div", { class: "tab-body" });
  const facts = h("p", { class: "muted facts-line" });
  const links = TABS.map((tab) => h("li", {}, h("a", { href: address("topics", [name], { tab: tab.name }), "aria-current": tab === chosen ? "page" : null }, tab.label)));
  const tabs = h("nav", { class: "tabs", "aria-label": "Parts of the topic" }, h("ul", {}, links));
  const element = h("div", { class: "view" },
    h("p", { class: "crumbs" }, h("a", { href: address("topics") }, "Topics"), " /"), h("h1", { class: "long-name" }, name), facts,
    tabs, body);
  // On a phone the tabs scroll; the one that is shown has to be in sight.
  requestAnimationFrame(() => {
    const current = tabs.querySelector<HTMLElement>("[aria-current]");
    if (current) tabs.scrollLeft = current.offsetLeft - tabs.offsetLeft - tabs.clientWidth / 2;
  });
  let tab: Tab | undefined;
  let isGone = false;
  void chosen.load().then((make) => {
    if (isGone) return;
    tab = make(name, route);
    replace(body, tab.element);
    return tab.refresh?.();
  }).catch((error: unknown) => {
    // What the server says of the topic is told once, above.
    if (!(error instanceof ApiError)) replace(body, errorNotice(error));
  });
  return {
    title: name,
    element,
    async refresh() {
      const info = await get<TopicInfo>(`/topics/${segment(name)}`);
      setText(facts, `${format.plural(info.events, "event")} · ${format.bytes(info.bytes)} · positions ${format.count(info.first_seq)} to ${format.count(info.tail_seq)} · ${info.config.durability}${info.config.compaction ? " · compacted" : ""}`);
      await tab?.refresh?.();
    },
    dispose() {
      isGone = true;
      tab?.dispose?.();
    },
  };
}
