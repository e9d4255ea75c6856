import { get, send } from "../api.js";
import { append, h, replace, svg } from "../dom.js";
import * as format from "../format.js";
import { openDialog, confirmDialog } from "../parts/dialog.js";
import { button, checkbox, field, guard, input, select } from "../parts/fields.js";
import { jsonView } from "../parts/json_view.js";
import { emptyNotice, loading, messageOf } from "../parts/notice.js";
import { toast } from "../parts/toast.js";
import { access } from "../rights.js";
import { address } from "../router.js";
import { eventLink } from "../parts/event_view.js";
const MAX_LETTERS = 1_000;
const MAX_LISTED = 50;
export const deadLetters = (route) => (route.names[0] === undefined ? topicList() : letters(route));
function topicList() {
    const body = h("div", {}, loading());
    return {
        title: "Dead letters",
        element: h("div", { class: "view" }, h("h1", {}, "Dead letters"), body),
        async refresh() {
            const { topics } = await get("/topics", { limit: 200, prefix: "dlq." });
            if (topics.length === 0)
                return replace(body, emptyNotice("No dead letters.", h("p", {}, "An event that fails in a group as often as it may is moved to dlq.<topic>, with its history. It is listed here until somebody redrives or removes it.")));
            replace(body, h("table", { class: "table card" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Topic"), h("th", { scope: "col", class: "is-number" }, "Stored"), h("th", { scope: "col", class: "is-number" }, "Newest"))), h("tbody", {}, topics.map((row) => h("tr", {}, h("th", { scope: "row", class: "long-name" }, h("a", { href: address("dead-letters", [row.topic.slice(4)]) }, row.topic.slice(4))), h("td", { class: "is-number" }, format.count(row.events)), h("td", { class: "is-number" }, row.last_ts === undefined ? "–" : format.ago(row.last_ts)))))));
        },
    };
}
function letters(route) {
    const topic = route.names[0] ?? "";
    const body = h("div", {}, loading());
    const summary = h("p", { class: "muted", role: "status" });
    const showDone = checkbox("Also those that were redriven");
    let signature = "";
    const page = {
        title: `Dead letters of ${topic}`,
        element: h("div", { class: "view" }, h("p", { class: "crumbs" }, h("a", { href: address("dead-letters") }, "Dead letters"), " /"), h("div", { class: "view-head" }, h("h1", { class: "long-name" }, topic), h("div", { class: "toolbar" }, showDone.element)), summary, body),
        async refresh() {
            const all = await newest(topic);
            const shown = all.filter((letter) => showDone.input.checked || !letter.redriven);
            const next = JSON.stringify(shown.map(({ seq, redriven }) => [seq, redriven]));
            if (next === signature)
                return;
            signature = next;
            replace(summary, `${format.plural(shown.length, "letter")}${all.length >= MAX_LETTERS ? `, of the newest ${format.count(MAX_LETTERS)}` : ""}${all.length > shown.length ? `; ${format.count(all.length - shown.length)} were redriven` : ""}`);
            const rights = await access(topic);
            const isAllowed = rights.publish === "all" && rights.admin !== "nothing" ? "all" : rights.admin;
            if (shown.length === 0)
                return replace(body, emptyNotice(all.length > 0 ? "All letters were redriven." : "No dead letters."));
            replace(body, groupsOf(shown).map(([err, group]) => errorGroup(topic, err, group, isAllowed, () => void page.refresh?.())));
        },
    };
    showDone.input.addEventListener("change", () => void page.refresh?.());
    return page;
}
async function newest(topic) {
    const { topics } = await get("/topics", { limit: 1, prefix: `dlq.${topic}` });
    const tail = topics[0]?.topic === `dlq.${topic}` ? topics[0].tail_seq : 0;
    const page = await get("/dlq", { topic, from: "seq", seq: Math.max(1, tail - MAX_LETTERS + 1), limit: MAX_LETTERS });
    return page.events.reverse();
}
function groupsOf(all) {
    const groups = new Map();
    for (const letter of all) {
        const { group, err } = payloadOf(letter);
        const key = `${group ?? "?"}: ${(err ?? "no error is given").replace(/[0-9a-f]{8,}|\d+/gi, "…")}`;
        groups.set(key, [...(groups.get(key) ?? []), letter]);
    }
    return [...groups].sort((one, other) => other[1].length - one[1].length);
}
function payloadOf(letter) {
    const { payload } = letter;
    return typeof payload === "object" && payload !== null ? payload : {};
}
function errorGroup(topic, err, group, allowed, onChange) {
    const ids = group.map(({ id }) => id);
    const redriveAll = guard(button("Redrive all…", () => void redrive(topic, ids, undefined, onChange), { class: "button button-primary" }), allowed, "redrive letters of this topic");
    const removeAll = guard(button("Remove all…", () => void remove(topic, ids, onChange), { class: "button button-danger" }), allowed, "remove letters of this topic");
    return h("section", { class: "card letters" }, h("div", { class: "view-head" }, h("h2", { class: "long-name" }, err, " ", h("span", { class: "badge badge-warn" }, format.count(group.length))), h("div", { class: "actions" }, redriveAll, removeAll)), group.slice(0, MAX_LISTED).map((letter) => letterRow(topic, letter, allowed, onChange)), group.length > MAX_LISTED && h("p", { class: "muted" }, `and ${format.count(group.length - MAX_LISTED)} more like these`));
}
function letterRow(topic, letter, allowed, onChange) {
    const content = payloadOf(letter);
    const row = h("details", { class: "event" }, h("summary", {}, h("span", { class: "event-time", title: format.dateTime(letter.ts) }, format.ago(letter.ts)), h("span", { class: "event-seq" }, `#${content.original?.seq ?? letter.seq}`), h("span", { class: "event-key" }, content.original?.key ?? ""), h("span", { class: "event-preview" }, format.preview(content.original?.payload ?? letter.payload, 200)), letter.redriven && h("span", { class: "badge badge-plain" }, "redriven")));
    let isFilled = false;
    row.addEventListener("toggle", () => {
        if (isFilled)
            return;
        isFilled = true;
        const edit = guard(button("Edit and redrive…", () => void redrive(topic, [letter.id], content.original?.payload ?? null, onChange)), allowed, "redrive letters of this topic");
        const again = guard(button("Redrive…", () => void redrive(topic, [letter.id], undefined, onChange)), allowed, "redrive letters of this topic");
        append(row, h("div", { class: "event-detail" }, h("p", {}, content.err ?? ""), timeline(content), content.original && h("p", {}, "Original: ", h("a", { href: eventLink({ topic: content.original.topic, id: content.original.id }) }, content.original.id)), h("div", { class: "payload" }, jsonView(content.original?.payload ?? letter.payload)), h("div", { class: "actions" }, again, edit)));
    });
    return row;
}
function timeline({ history = [] }) {
    const first = history[0]?.start;
    const last = history.at(-1)?.end;
    if (first === undefined || last === undefined)
        return undefined;
    const span = Math.max(1, last - first);
    const bars = history.map(({ start, end }) => svg("rect", { class: "attempt", x: `${((start - first) / span) * 98}%`, width: `${Math.max(1, ((end - start) / span) * 98)}%`, y: 4, height: 12, rx: 2 }));
    return h("div", { class: "timeline" }, svg("svg", { width: "100%", height: 20, role: "img", "aria-label": `${history.length} attempts over ${format.duration(span)}` }, svg("line", { class: "grid", x1: 0, x2: "100%", y1: 10, y2: 10 }), bars), h("ol", {}, history.map((attempt) => h("li", {}, h("b", {}, format.clock(attempt.start)), ` ${attempt.member}, ${format.duration(attempt.end - attempt.start)}: ${attempt.reason}`))));
}
async function redrive(topic, ids, payload, onChange) {
    const isEdited = payload !== undefined;
    const text = h("textarea", { rows: 10, class: "code", spellcheck: "false" }, isEdited ? JSON.stringify(payload, null, 2) : "");
    const rate = input({ type: "number", min: 1, placeholder: "as fast as it goes" });
    const to = select([["group", "only the group it died in"], ["all", "every group of the topic"]], "group");
    const force = checkbox("Also letters that were redriven before");
    const preview = h("div", { class: "preview", role: "status" });
    const body = (dryRun) => ({
        topic, ids, dry_run: dryRun, force: force.input.checked, to: to.value, rate: rate.value ? Number(rate.value) : undefined,
        payload: isEdited ? JSON.parse(text.value) : undefined,
    });
    const tryIt = async () => {
        try {
            const reply = await send("POST", "/dlq/redrive", body(true));
            const count = reply.matched - reply.failed.length;
            replace(preview, `${format.plural(count, "letter")} would be sent to the topic again.`, reply.failed.length > 0 && h("ul", {}, reply.failed.slice(0, 5).map((failed) => h("li", {}, failed.error))));
        }
        catch (error) {
            replace(preview, messageOf(error));
        }
    };
    for (const control of [text, rate, to, force.input])
        control.addEventListener("change", () => void tryIt());
    void tryIt();
    const isDone = await openDialog({
        title: isEdited ? "Edit and redrive" : `Redrive ${format.plural(ids.length, "letter")}`, action: "Redrive",
        body: [isEdited && field("Payload", text), field("Goes to", to), !isEdited && field("Events a second", rate), force.element, preview],
        run: async () => {
            const reply = await send("POST", "/dlq/redrive", body(false));
            if (reply.redriven === 0 && reply.failed[0])
                throw new Error(reply.failed[0].error);
            toast(`${format.plural(reply.redriven, "letter was", "letters were")} redriven${reply.failed.length > 0 ? `, ${reply.failed.length} were not` : ""}.`, reply.failed.length > 0 ? "bad" : "good");
        },
    });
    if (isDone)
        onChange();
}
async function remove(topic, ids, onChange) {
    const isDone = await confirmDialog(`Remove ${format.plural(ids.length, "letter")}?`, "They are not listed any more and cannot be redriven.", "Remove", async () => {
        const reply = await send("DELETE", "/dlq", undefined, { topic, ids: ids.join(",") });
        toast(`${format.plural(reply.removed, "letter was", "letters were")} removed.`, "good");
    });
    if (isDone)
        onChange();
}
