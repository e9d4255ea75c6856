import { get } from "../api.js";
import { h, replace } from "../dom.js";
import * as format from "../format.js";
import { sparkline } from "../parts/chart.js";
import { command, emptyNotice, loading } from "../parts/notice.js";
import { address } from "../router.js";
import { reasonBadge } from "./groups.js";
const MAX_GROUPS = 100;
const COLUMNS = ["Group", "State", "Lag", "15 minutes", "In flight", "Waiting", "Members", "Redelivered"];
export function topicGroups(topic) {
    const body = h("div", { class: "scroll-x card", tabindex: "0", role: "region", "aria-label": "Groups of the topic" }, loading());
    return {
        element: body,
        async refresh() {
            const { groups, total } = await get("/groups", { topic, limit: MAX_GROUPS, sort: "lag", order: "desc" });
            if (groups.length === 0) {
                return replace(body, emptyNotice("No group reads this topic.", h("p", {}, "A group is made by its first member:"), command(`curl -d '{"topic":"${topic}","group":"readers","from":"earliest","max":10}' '${location.origin}/pull'`)));
            }
            replace(body, h("table", { class: "table" }, h("thead", {}, h("tr", {}, COLUMNS.map((name, at) => h("th", { scope: "col", class: at === 2 || at > 3 ? "is-number" : "" }, name)))), h("tbody", {}, groups.map(row))), total > groups.length && h("p", { class: "muted" }, `${format.count(total - groups.length)} more groups lag less.`));
        },
    };
}
function row(group) {
    const number = (value) => h("td", { class: "is-number" }, format.short(value));
    return h("tr", {}, h("th", { scope: "row" }, h("a", { href: address("groups", [group.topic, group.group]), class: "long-name" }, group.group)), h("td", { title: group.sentence }, reasonBadge(group.reason, group.lag)), number(group.lag), h("td", {}, sparkline(group.recent_lag, `Lag over the last 15 minutes, now ${format.count(group.lag)}`)), number(group.in_flight), number(group.waiting), number(group.members.length), number(group.counts["redelivered"] ?? 0));
}
