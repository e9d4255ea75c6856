import { get } from "../api.js";
import { h } from "../dom.js";
import * as format from "../format.js";
import { sparkline } from "../parts/chart.js";
import { input } from "../parts/fields.js";
import { command, emptyNotice } from "../parts/notice.js";
import { VirtualTable } from "../parts/virtual_table.js";
import { address, remember } from "../router.js";
import { group } from "./group.js";
const SEARCH_PAUSE_MS = 200;
export const REASONS = {
    caught_up: ["caught up", "good"],
    flowing: ["flowing", "good"],
    all_in_flight: ["in flight", "plain"],
    no_members: ["no members", "warn"],
    paused: ["paused", "warn"],
    in_flight_cap_reached: ["in-flight cap", "warn"],
    window_full: ["window full", "warn"],
    waiting_for_backoff: ["backing off", "warn"],
    key_lanes_blocked: ["keys blocked", "warn"],
    rate_limited: ["rate limited", "warn"],
};
export function reasonBadge(reason, lag) {
    const [label, kind] = REASONS[reason] ?? [reason, "plain"];
    return h("span", { class: `badge badge-${reason === "no_members" && lag === 0 ? "plain" : kind}` }, label);
}
export const groups = (route) => (route.names.length < 2 ? list(route) : group(route));
function list(route) {
    const search = input({ type: "search", value: route.query.get("q") ?? "", placeholder: "Filter by topic or group", "aria-label": "Filter groups by topic or group" });
    const columns = [
        { label: "Group", sort: "group", cell: (row) => h("a", { href: address("groups", [row.topic, row.group]), class: "name two-lines", title: `${row.group} of ${row.topic}` }, h("span", {}, row.group), h("small", { class: "muted" }, row.topic)) },
        { label: "State", cell: (row) => h("span", { title: row.sentence }, reasonBadge(row.reason, row.lag)) },
        { label: "Lag", sort: "lag", isNumber: true, cell: (row) => format.short(row.lag) },
        { label: "15 minutes", isWide: true, cell: (row) => sparkline(row.recent_lag, `Lag over the last 15 minutes, now ${format.count(row.lag)}`) },
        { label: "Oldest", sort: "oldest", isNumber: true, isWide: true, cell: (row) => (row.oldest_unacked_ms > 0 ? format.duration(row.oldest_unacked_ms) : h("span", { class: "muted" }, "–")) },
        { label: "In flight", sort: "in_flight", isNumber: true, isWide: true, cell: (row) => format.short(row.in_flight) },
        { label: "Members", isNumber: true, isWide: true, cell: (row) => format.count(row.members.length) },
        { label: "Redelivered", sort: "redelivered", isNumber: true, isWide: true, cell: (row) => format.short(row.counts["redelivered"] ?? 0) },
    ];
    const table = new VirtualTable({
        label: "Groups", columns, sort: route.query.get("sort") ?? "lag", order: route.query.get("order") === "asc" ? "asc" : "desc",
        key: (row) => `${row.topic}\n${row.group}`,
        load: async (offset, limit, sort, order) => {
            const page = await get("/groups", { offset, limit, sort, order, q: search.value });
            return { total: page.total, offset: page.offset, rows: page.groups };
        },
        onSort: (sort, order) => remember({ sort, order }),
        empty: () => (search.value ? emptyNotice(`No group or topic has “${search.value}” in its name.`) : emptyNotice("No groups yet.", h("p", {}, "A group is made by its first member, and goes on where it stopped:"), command(`curl -d '{"topic":"hello","group":"readers","from":"earliest","max":10}' '${location.origin}/pull'`))),
    });
    let timer = 0;
    search.addEventListener("input", () => {
        clearTimeout(timer);
        timer = window.setTimeout(() => {
            remember({ q: search.value });
            void table.refresh();
        }, SEARCH_PAUSE_MS);
    });
    const element = h("div", { class: "view" }, h("div", { class: "view-head" }, h("h1", {}, "Groups"), h("div", { class: "toolbar" }, search)), table.element);
    return { title: "Groups", element, refresh: () => table.refresh(), dispose: () => table.dispose() };
}
