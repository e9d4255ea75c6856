import { get, send } from "../api.js";
import { h, replace, setText } from "../dom.js";
import * as format from "../format.js";
import { confirmDialog, openDialog } from "../parts/dialog.js";
import { button, field, guard, input, select } from "../parts/fields.js";
import { errorNotice, messageOf } from "../parts/notice.js";
import { toast } from "../parts/toast.js";
import { withAccess } from "../rights.js";
import { address, go } from "../router.js";
import { reasonBadge } from "./groups.js";
export function group(route) {
    const [topic = "", name = ""] = route.names;
    const why = h("p", { class: "why", role: "status" });
    const badge = h("span", {});
    const tiles = h("dl", { class: "tiles tiles-four" });
    const members = h("div", {});
    const lanes = h("div", {});
    const undo = button("Undo the seek", () => void undoSeek(topic, name, undo));
    undo.hidden = true;
    const seek = button("Move cursor…", () => void seekDialog(topic, name, () => void offerUndo(undo)), { class: "button button-primary" });
    const change = button("Change…", () => void changeDialog(topic, name));
    const remove = button("Remove…", () => void removeGroup(topic, name), { class: "button button-danger" });
    withAccess(({ admin }) => [seek, change, remove, undo].forEach((control) => guard(control, admin, "administer this group")), topic, name);
    const element = h("div", { class: "view" }, h("p", { class: "crumbs" }, h("a", { href: address("groups") }, "Groups"), " / ", h("a", { href: address("topics", [topic], { tab: "groups" }), class: "long-name" }, topic), " /"), h("div", { class: "view-head" }, h("h1", { class: "long-name" }, name, " ", badge), h("div", { class: "toolbar" }, seek, undo, change, remove)), h("section", { class: "card" }, h("h2", {}, "Why it flows or does not"), why, lanes), tiles, h("section", { class: "card" }, h("h2", {}, "Members"), members));
    return {
        title: `${name} of ${topic}`,
        element,
        async refresh() {
            const explanation = await get("/explain", { topic, group: name });
            const info = explanation.group;
            replace(badge, reasonBadge(explanation.reason, info.lag));
            setText(why, explanation.sentence.charAt(0).toUpperCase() + explanation.sentence.slice(1));
            drawTiles(tiles, explanation);
            drawMembers(members, info.members, info.oldest_in_flight_ms);
            drawLanes(lanes, topic, explanation);
        },
    };
}
function drawTiles(tiles, { group: info, next_retry_ms: nextRetry }) {
    const counts = (name) => info.counts[name] ?? 0;
    const figures = [
        ["Lag", format.short(info.lag), `cursor ${format.count(info.cursor)} of ${format.count(info.tail)}`],
        ["In flight", format.short(info.in_flight), info.in_flight > 0 ? `longest held ${format.duration(info.oldest_in_flight_ms)}` : ""],
        ["Waiting to retry", format.short(info.waiting), nextRetry ? `next ${format.ago(nextRetry)}` : ""],
        ["Acknowledged", format.short(counts("acked")), `${format.short(counts("delivered"))} delivered`],
        ["Nacked", format.short(counts("nacked")), `${format.short(counts("expired"))} leases expired`],
        ["Redelivered", format.short(counts("redelivered")), `${format.short(counts("dead_lettered"))} dead-lettered`],
        ["Attempts", format.count(info.max_attempts), `lease ${format.duration(info.ack_timeout_ms)}`],
        ["Ordering", info.ordering === "key" ? "by key" : "none", info.skipped > 0 ? `${format.short(info.skipped)} skipped by retention` : `since ${format.ago(info.created_ms)}`],
    ];
    replace(tiles, figures.map(([name, value, note]) => h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value), h("dd", { class: "tile-note" }, note))));
}
function drawMembers(into, members, oldestMs) {
    if (members.length === 0)
        return replace(into, h("p", { class: "muted" }, "Nobody is subscribed. Events wait here until a member comes."));
    replace(into, h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Members" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, ["Member", "Holds", "Room", "State"].map((name, at) => h("th", { scope: "col", class: at === 1 || at === 2 ? "is-number" : "" }, name)))), h("tbody", {}, members.map((member) => h("tr", {}, h("th", { scope: "row", class: "long-name" }, member.name), h("td", { class: "is-number" }, h("meter", { min: 0, max: member.max_in_flight, value: member.in_flight, "aria-label": `holds ${member.in_flight} of ${member.max_in_flight}` }), ` ${format.count(member.in_flight)} of ${format.count(member.max_in_flight)}`), h("td", { class: "is-number" }, format.count(member.room)), h("td", {}, member.paused ? "paused" : member.in_flight > 0 ? "working" : "waiting")))))), oldestMs > 0 && h("p", { class: "muted" }, `The oldest open lease has been held for ${format.duration(oldestMs)}.`));
}
function drawLanes(into, topic, { lanes = [], damage = [] }) {
    replace(into, lanes.length > 0 && h("table", { class: "table" }, h("caption", {}, "Blocked keys"), h("thead", {}, h("tr", {}, ["Key", "Blocked by", "Waiting", "Due"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, lanes.map((lane) => h("tr", {}, h("td", {}, lane.key ?? ""), h("td", {}, h("a", { href: address("topics", [topic], { tab: "browse", seq: lane.blocked_by_seq }) }, `#${lane.blocked_by_seq}`)), h("td", {}, format.count(lane.waiting)), h("td", {}, lane.due_ms ? format.ago(lane.due_ms) : "with a member"))))), damage.length > 0 && h("ul", { class: "notice notice-error" }, damage.map((sentence) => h("li", {}, sentence))));
}
async function seekDialog(topic, name, onDone) {
    const from = select([["earliest", "the beginning"], ["latest", "the end"], ["ts", "a time"], ["seq", "a position"], ["afterId", "behind an id"]], "ts");
    const value = input();
    const effect = h("div", { class: "preview", role: "status" });
    const place = () => {
        const text = value.value.trim();
        switch (from.value) {
            case "ts": return { from: "ts", ts: new Date(text).getTime() || 0 };
            case "seq": return { from: "seq", seq: Math.max(1, Number(text) || 1) };
            case "afterId": return { from: "afterId", afterId: text };
            default: return { from: from.value };
        }
    };
    let turn = 0;
    const show = async () => {
        const now = (turn += 1);
        try {
            const reply = await send("POST", "/cursors", { topic, group: name, ...place(), dry_run: true });
            if (now === turn)
                replace(effect, inWords(reply));
        }
        catch (error) {
            if (now === turn)
                replace(effect, messageOf(error));
        }
    };
    const prepare = () => {
        const row = value.parentElement;
        if (row)
            row.hidden = from.value === "earliest" || from.value === "latest";
        value.type = from.value === "ts" ? "datetime-local" : from.value === "seq" ? "number" : "text";
        value.step = from.value === "ts" ? "0.001" : "1";
        value.value = from.value === "ts" ? format.localInput(format.serverNow() - 600_000) : from.value === "seq" ? "1" : "";
        void show();
    };
    from.addEventListener("change", prepare);
    value.addEventListener("input", () => void show());
    const body = [field("Move the cursor to", from), field("Value", value), effect];
    prepare();
    await openDialog({
        title: `Move the cursor of ${name}`, action: "Move", body,
        run: async () => {
            const reply = await send("POST", "/cursors", { topic, group: name, ...place() });
            toast(`The cursor is at ${format.count(reply.cursor)}.`, "good");
            onDone();
        },
    });
}
function inWords(reply) {
    const parts = [
        reply.redelivered > 0 ? `${format.plural(reply.redelivered, "settled event")} would be delivered again` : "",
        reply.skipped > 0 ? `${format.plural(reply.skipped, "unsettled event")} would be skipped` : "",
    ].filter((part) => part !== "");
    const words = parts.length > 0 ? parts.join(", and ") : "Nothing would be delivered again or skipped";
    return `${words}. The cursor would be at ${format.count(reply.cursor)}${reply.beyond_tail ? ", the end of the topic" : ""}.`;
}
async function offerUndo(undo) {
    const { paths } = await get("/openapi.json");
    undo.hidden = !("/cursors/undo" in paths);
}
async function undoSeek(topic, name, undo) {
    try {
        await send("POST", "/cursors/undo", { topic, group: name });
        toast("The group is where it was before.", "good");
        undo.hidden = true;
    }
    catch (error) {
        toast(messageOf(error), "bad");
    }
}
async function changeDialog(topic, name) {
    const { group: info } = await get("/explain", { topic, group: name });
    const attempts = input({ type: "number", min: 1, value: info.max_attempts });
    const ordering = select([["none", "none"], ["key", "by key: one event of each key at a time"]], info.ordering);
    await openDialog({
        title: `Change ${name}`, action: "Save", body: [field("Most attempts", attempts, "Then an event is a dead letter."), field("Ordering", ordering)],
        run: async () => {
            await send("PATCH", "/groups", { topic, group: name, maxAttempts: Number(attempts.value), ordering: ordering.value });
            toast("The group was changed.", "good");
        },
    }).catch((error) => errorNotice(error));
}
async function removeGroup(topic, name) {
    const text = `The cursor and what was acknowledged are forgotten; subscriptions end. Events stay in the topic.`;
    const isDone = await confirmDialog(`Remove group ${name}?`, text, "Remove", () => send("DELETE", "/groups", undefined, { topic, group: name }));
    if (!isDone)
        return;
    toast(`Group ${name} was removed.`, "good");
    go(address("groups"));
}
