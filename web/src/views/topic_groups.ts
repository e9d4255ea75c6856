/** The groups of one topic. */

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import * as format from "../format.js";
import type { GroupInfo } from "../model.js";
import { command, emptyNotice, loading } from "../parts/notice.js";
import { address } from "../router.js";
import type { Tab } from "./topic.js";

export function topicGroups(topic: string): Tab {
  const body = h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Groups of the topic" }, loading());
  return {
    element: body,
    async refresh() {
      const { groups } = await get<{ groups: GroupInfo[] }>("/groups", { topic });
      if (groups.length === 0) {
        return replace(body, emptyNotice("No group reads this topic.", h("p", {}, "A group is made by its first member:"),
          command(`curl -d '{"topic":"${topic}","group":"readers","from":"earliest","max":10}' '${location.origin}/pull'`)));
      }
      replace(body, h("table", { class: "table" },
        h("thead", {}, h("tr", {}, ["Group", "Lag", "In flight", "Waiting", "Members", "Redelivered"].map((name, at) => h("th", { scope: "col", class: at > 0 ? "is-number" : "" }, name)))),
        h("tbody", {}, groups.map((group) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: address("groups", [topic, group.group]) }, group.group)),
          [group.lag, group.in_flight, group.waiting, group.members.length, group.counts["redelivered"] ?? 0].map((value) => h("td", { class: "is-number" }, format.count(value))))))));
    },
  };
}
