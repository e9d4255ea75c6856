/** One group: why it does or does not flow, who holds what, and what can be done about it. */

import { get } from "../api.js";
import { type Child, h, replace, setText } from "../dom.js";
import * as format from "../format.js";
import type { Explanation, GroupRow, Member } from "../model.js";
import type { Page } from "../page.js";
import { sparkline } from "../parts/chart.js";
import { button, guard } from "../parts/fields.js";
import { withAccess } from "../rights.js";
import { address, type Route } from "../router.js";
import { changeDialog, removeGroup, seekDialog, setPaused, undoDialog } from "./group_actions.js";
import { reasonBadge } from "./groups.js";

export function group(route: Route): Page {
  const [topic = "", name = ""] = route.names;
  const why = h("p", { class: "why", role: "status" });
  const badge = h("span", {});
  const tiles = h("dl", { class: "tiles tiles-four" });
  const members = h("div", {});
  const lanes = h("div", {});
  let isPaused = false;
  const again = (): void => void page.refresh?.();
  const seek = button("Move cursor…", () => void seekDialog(topic, name, again), { class: "button button-primary" });
  const undo = button("Undo move…", () => void undoDialog(topic, name, again));
  const pause = button("Pause", () => void setPaused(topic, name, !isPaused, again));
  const change = button("Change…", () => void changeDialog(topic, name));
  const remove = button("Remove…", () => void removeGroup(topic, name), { class: "button button-danger" });
  withAccess(({ admin }) => [seek, undo, pause, change, remove].forEach((control) => guard(control, admin, "administer this group")), topic, name);
  const element = h("div", { class: "view" },
    h("p", { class: "crumbs" }, h("a", { href: address("groups") }, "Groups"), " / ", h("a", { href: address("topics", [topic], { tab: "groups" }), class: "long-name" }, topic), " /"),
    h("div", { class: "view-head" }, h("h1", { class: "long-name" }, name, " ", badge), h("div", { class: "toolbar" }, seek, undo, pause, change, remove)),
    h("section", { class: "card" }, h("h2", {}, "Why it flows or does not"), why, lanes), tiles,
    h("section", { class: "card" }, h("h2", {}, "Members"), members));
  const page: Page = {
    title: `${name} of ${topic}`,
    element,
    async refresh() {
      const [explanation, { groups: [row] }] = await Promise.all([
        get<Explanation>("/explain", { topic, group: name }),
        get<{ groups: GroupRow[] }>("/groups", { topic, group: name, limit: 1 }),
      ]);
      const info = explanation.group;
      isPaused = info.paused === true;
      setText(pause, isPaused ? "Resume" : "Pause");
      replace(badge, reasonBadge(explanation.reason, info.lag));
      setText(why, explanation.sentence.charAt(0).toUpperCase() + explanation.sentence.slice(1));
      drawTiles(tiles, explanation, row);
      drawMembers(members, info.members);
      drawLanes(lanes, topic, explanation);
    },
  };
  return page;
}

function drawTiles(tiles: HTMLElement, { group: info, next_retry_ms: nextRetry }: Explanation, row: GroupRow | undefined): void {
  const counts = (name: string): number => info.counts[name] ?? 0;
  const oldestMs = row?.oldest_unacked_ms ?? 0;
  const figures: [string, Child, string][] = [
    ["Lag", [format.short(info.lag), row && sparkline(row.recent_lag, `Lag over the last 15 minutes, now ${format.count(info.lag)}`)], `cursor ${format.count(info.cursor)} of ${format.count(info.tail)}`],
    ["Oldest", oldestMs > 0 ? format.duration(oldestMs) : "–", info.skipped > 0 ? `${format.short(info.skipped)} skipped by retention` : "unacknowledged"],
    ["In flight", format.short(info.in_flight), info.in_flight > 0 ? `longest held ${format.duration(info.oldest_in_flight_ms)}` : ""],
    ["Waiting to retry", format.short(info.waiting), nextRetry ? `next ${format.ago(nextRetry)}` : ""],
    ["Acknowledged", format.short(counts("acked")), `${format.short(counts("delivered"))} delivered`],
    ["Nacked", format.short(counts("nacked")), `${format.plural(counts("expired"), "lease")} expired`],
    ["Redelivered", format.short(counts("redelivered")), `${format.short(counts("dead_lettered"))} dead-lettered`],
    ["Attempts", format.count(info.max_attempts), `lease ${format.duration(info.ack_timeout_ms)}${info.ordering === "key" ? ", by key" : ""}`],
  ];
  replace(tiles, figures.map(([name, value, note]) => h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value), h("dd", { class: "tile-note" }, note))));
}

function drawMembers(into: HTMLElement, members: Member[]): void {
  if (members.length === 0) return replace(into, h("p", { class: "muted" }, "Nobody is subscribed. Events wait here until a member comes."));
  const head = ["Member", "Holds", "Longest", "Room", "State"].map((name, at) => h("th", { scope: "col", class: at > 0 && at < 4 ? "is-number" : "" }, name));
  replace(into, h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Members" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, head)),
    h("tbody", {}, members.map((member) => h("tr", {}, h("th", { scope: "row", class: "long-name" }, member.name),
      h("td", { class: "is-number" }, h("meter", { min: 0, max: member.max_in_flight, value: member.in_flight, "aria-label": `holds ${member.in_flight} of ${member.max_in_flight}` }), ` ${format.count(member.in_flight)} of ${format.count(member.max_in_flight)}`),
      h("td", { class: "is-number" }, member.in_flight > 0 ? `for ${format.duration(member.oldest_in_flight_ms)}` : "–"),
      h("td", { class: "is-number" }, format.count(member.room)), h("td", {}, member.paused ? "paused" : member.in_flight > 0 ? "working" : "waiting")))))));
}

function drawLanes(into: HTMLElement, topic: string, { lanes = [], damage = [] }: Explanation): void {
  replace(into,
    lanes.length > 0 && h("table", { class: "table" }, h("caption", {}, "Blocked keys"), h("thead", {}, h("tr", {}, ["Key", "Blocked by", "Waiting", "Due"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, lanes.map((lane) => h("tr", {}, h("td", {}, lane.key ?? ""), h("td", {}, h("a", { href: address("topics", [topic], { tab: "browse", seq: lane.blocked_by_seq }) }, `#${lane.blocked_by_seq}`)), h("td", {}, format.count(lane.waiting)), h("td", {}, lane.due_ms ? format.ago(lane.due_ms) : "with a member"))))),
    damage.length > 0 && h("ul", { class: "notice notice-error" }, damage.map((sentence) => h("li", {}, sentence))));
}
