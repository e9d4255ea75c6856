import { ApiError, get } from "../api.js";
import { h, replace } from "../dom.js";
import * as format from "../format.js";
import { sparkline } from "../parts/chart.js";
import { command, emptyNotice, loading } from "../parts/notice.js";
import { address } from "../router.js";
const TOPIC = "process.state";
const PAGE_PROCESSES = 200;
const MAX_POINTS = 90;
const PAST_MS = 15 * 60_000;
const MAX_PAST = 1_000;
export const processes = () => {
    const body = h("div", {}, loading());
    const summary = h("p", { class: "muted", role: "status" });
    const seen = new Map();
    return {
        title: "Processes",
        element: h("div", { class: "view" }, h("h1", {}, "Processes"), summary, body),
        async refresh() {
            let page = { total: 0, offset: 0, items: [], next: null };
            try {
                page = await get(`/list/${TOPIC}`, { limit: PAGE_PROCESSES });
            }
            catch (error) {
                if (!(error instanceof ApiError && error.code === "unknown_topic"))
                    throw error;
            }
            if (page.items.length === 0)
                return replace(body, nothing());
            if (seen.size === 0)
                await rememberPast(seen);
            const items = page.items.map((item) => ({ item, process: (item.payload ?? {}) })).sort((one, other) => rank(one.process) - rank(other.process));
            const alive = items.filter(({ process }) => process.status === "alive").length;
            replace(summary, `${format.plural(page.total, "process", "processes")}: ${alive} alive, ${items.length - alive} stale${page.next === null ? "" : `; the first ${PAGE_PROCESSES} are shown`}`);
            for (const { item, process } of items)
                remember(seen, item.key, process);
            replace(body, h("div", { class: "scroll-x card", tabindex: "0", role: "region", "aria-label": "Processes" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, ["Process", "Host", "Status", "CPU", "Memory", "Last seen"].map((name, at) => h("th", { scope: "col", class: at > 2 ? "is-number" : "" }, name)))), h("tbody", {}, items.map(({ item, process }) => row(item, process, seen.get(item.key)))))));
        },
    };
};
function rank({ status }) {
    return status === "alive" ? 1 : 0;
}
async function rememberPast(seen) {
    const { events } = await get("/replay", { topic: TOPIC, from: "ts", ts: Math.round(format.serverNow() - PAST_MS), limit: MAX_PAST });
    for (const event of events)
        if (event.key !== undefined && event.payload)
            remember(seen, event.key, event.payload);
}
function remember(seen, key, { cpu_pct: cpu = 0, mem_mb: memory = 0 }) {
    const figures = seen.get(key) ?? { cpu: [], memory: [] };
    figures.cpu.push(cpu);
    figures.memory.push(memory);
    for (const list of [figures.cpu, figures.memory])
        list.splice(0, Math.max(0, list.length - MAX_POINTS));
    seen.set(key, figures);
}
function row(item, process, figures) {
    const lastSeen = process.last_seen_ts ?? item.ts;
    const cpu = process.cpu_pct === undefined ? "–" : `${process.cpu_pct.toFixed(1)} %`;
    const memory = process.mem_mb === undefined ? "–" : `${Math.round(process.mem_mb)} MB`;
    return h("tr", {}, h("th", { scope: "row" }, h("a", { href: address("topics", [TOPIC], { tab: "keys", key: item.key }) }, process.name ?? item.key), h("small", { class: "muted" }, process.pid === undefined ? "" : ` ${process.pid}`)), h("td", { class: "nowrap" }, process.host ?? ""), h("td", {}, h("span", { class: `badge ${process.status === "alive" ? "badge-good" : "badge-warn"}` }, process.status ?? "unknown")), h("td", { class: "is-number" }, sparkline(figures?.cpu ?? [], `CPU, now ${cpu}`, false), ` ${cpu}`), h("td", { class: "is-number" }, sparkline(figures?.memory ?? [], `Memory, now ${memory}`, false), ` ${memory}`), h("td", { class: "is-number", title: format.dateTime(lastSeen) }, format.ago(lastSeen)));
}
function nothing() {
    return emptyNotice("No processes are known.", h("p", {}, "Turn the process projector on in prombus.toml:"), command("[projectors]\nprocess = true"), h("p", {}, "Then every process that publishes heartbeats is listed here, and turns stale when it falls silent for 15 seconds:"), command(`curl -d '{"pid":41,"name":"api","host":"web1","cpu_pct":3.5,"mem_mb":80}' '${location.origin}/publish/heartbeat.received'`));
}
