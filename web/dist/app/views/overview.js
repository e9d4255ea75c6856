import { get, serverStatus } from "../api.js";
import { h, replace, setText } from "../dom.js";
import * as format from "../format.js";
import { currentConnection, history } from "../live.js";
import { LineChart } from "../parts/chart.js";
import { command, emptyNotice } from "../parts/notice.js";
import { address } from "../router.js";
import { projectorCard, projectorsInShort } from "./projectors.js";
const SLOW_TURNS = 3;
const RATE_SAMPLES = 5;
export const overview = () => {
    const events = new LineChart("Events", format.rate);
    const fsync = new LineChart("Fsync time", format.micros);
    const trouble = new LineChart("Nacks and redeliveries", format.rate);
    const lag = new LineChart("Lag of all groups", format.short);
    const tiles = new Tiles();
    const findings = h("div", { class: "findings" });
    const projectors = h("div", {});
    const first = h("div", {});
    const charts = h("div", { class: "charts" }, events.element, trouble.element, lag.element, fsync.element);
    const element = h("div", { class: "view" }, h("h1", {}, "Overview"), first, tiles.element, h("section", { class: "card", "aria-labelledby": "attention" }, h("h2", { id: "attention" }, "Needs attention"), findings), projectors, charts);
    let turn = 0;
    let drawn = "";
    return {
        title: "Overview",
        element,
        async refresh() {
            if (turn++ % SLOW_TURNS === 0) {
                const [status, attention, topics] = await Promise.all([serverStatus(), get("/attention"), get("/topics", { limit: 1 })]);
                tiles.takeStatus(status, topics.total);
                const next = JSON.stringify([status.projectors, attention.findings]);
                if (next !== drawn) {
                    drawn = next;
                    replace(projectors, projectorCard(status.projectors));
                    replace(findings, attention.findings.length === 0 ? h("p", { class: "all-well" }, "Nothing: groups flow, nothing is damaged, no dead letters.") : h("ul", {}, attention.findings.map(findingRow)));
                }
                replace(first, topics.total === 0 && firstSteps());
            }
            const isRecorded = history.ts.length > 0 || currentConnection() === "connecting";
            charts.hidden = !isRecorded;
            tiles.takeHistory();
            const perSecond = (values) => smooth(values).map((value) => (value * 1000) / history.interval_ms);
            events.update(history.ts, [
                { name: "published", color: "series-1", values: perSecond(history.published) },
                { name: "delivered", color: "series-2", values: perSecond(history.delivered) },
                { name: "acked", color: "series-3", values: perSecond(history.acked) },
            ]);
            trouble.update(history.ts, [
                { name: "nacked", color: "series-4", values: perSecond(history.nacked) },
                { name: "redelivered", color: "series-5", values: perSecond(history.redelivered) },
            ]);
            fsync.update(history.ts, [
                { name: "p50", color: "series-2", values: history.fsync_p50_us },
                { name: "p99", color: "series-4", values: history.fsync_p99_us },
            ]);
            lag.update(history.ts, [{ name: "lag", color: "series-5", values: history.lag }]);
        },
    };
};
class Tiles {
    element = h("dl", { class: "tiles" });
    #tiles = new Map();
    takeStatus(status, topics) {
        const { store } = status;
        this.#set("Health", store?.failed ? "Failing" : "OK", store?.failed ?? `up ${format.duration(status.now_ms - status.started_ms)}, ${status.version}`);
        this.#set("Topics", format.count(topics), "");
        if (!store)
            return;
        this.#set("Store", format.bytes(store.bytes), this.#growth());
        this.#set("Durability", store.durability.split(":")[0] ?? store.durability, store.url);
        this.#set("Projectors", ...projectorsInShort(status.projectors));
    }
    takeHistory() {
        if (history.ts.length === 0)
            return;
        const rate = (values) => format.rate(mean(values.slice(-RATE_SAMPLES)) * 1000 / history.interval_ms);
        this.#set("Published", rate(history.published), `${rate(history.delivered)} delivered`);
        this.#set("Connections", format.count(history.connections.at(-1) ?? 0), "WebSockets");
    }
    #growth() {
        const minutes = ((history.ts.at(-1) ?? 0) - (history.ts[0] ?? 0)) / 60_000;
        const grown = (history.store_bytes.at(-1) ?? 0) - (history.store_bytes[0] ?? 0);
        if (minutes < 0.5)
            return "";
        return `${grown < 0 ? "−" : "+"}${format.bytes(Math.abs(grown) / minutes)}/min`;
    }
    #set(name, value, note) {
        let tile = this.#tiles.get(name);
        if (!tile) {
            tile = { value: h("dd", {}), note: h("dd", { class: "tile-note" }) };
            this.#tiles.set(name, tile);
            this.element.append(h("div", { class: "tile" }, h("dt", {}, name), tile.value, tile.note));
        }
        setText(tile.value, value);
        setText(tile.note, note);
        tile.note.title = note;
    }
}
function findingRow(finding) {
    const words = { error: "Error", warning: "Warning", notice: "Notice" };
    const sentence = finding.sentence.charAt(0).toUpperCase() + finding.sentence.slice(1);
    return h("li", { class: `finding finding-${finding.level}` }, h("span", { class: "finding-level" }, words[finding.level]), h("a", { href: linkOf(finding) }, sentence));
}
function linkOf({ kind, topic, group }) {
    if (kind === "dead_letters" && topic)
        return address("dead-letters", [topic]);
    if (topic && group)
        return address("groups", [topic, group]);
    if (topic)
        return address("topics", [topic]);
    return address("playground", [kind === "rate_limited" ? "metrics" : "healthz"]);
}
function firstSteps() {
    const { origin } = location;
    return emptyNotice("No topics yet. A topic is made by its first event:", command(`curl -d '{"text":"hi"}' '${origin}/publish/hello'`), h("p", {}, "Follow it from another shell, from its beginning:"), command(`curl -N '${origin}/sse?topic=hello&from=earliest'`), h("p", {}, "Consume it as a durable group; what is not acknowledged comes back:"), command(`curl -d '{"topic":"hello","group":"readers","from":"earliest","max":10}' '${origin}/pull'`));
}
function mean(values) {
    return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
function smooth(values) {
    return values.map((_, at) => mean(values.slice(Math.max(0, at - 2), at + 1)));
}
