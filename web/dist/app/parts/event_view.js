import { get } from "../api.js";
import { append, h, replace } from "../dom.js";
import { bytes, dateTime, clock, preview } from "../format.js";
import { address, go } from "../router.js";
import { button } from "./fields.js";
import { jsonView } from "./json_view.js";
import { copy, errorNotice, loading, messageOf } from "./notice.js";
import { toast } from "./toast.js";
const MAX_RAW_CHARS = 200_000;
export function eventRow(event, around) {
    const row = h("details", { class: "event", "data-seq": event.seq });
    append(row, h("summary", {}, h("span", { class: "event-time", title: dateTime(event.ts) }, clock(event.ts)), h("span", { class: "event-seq" }, `#${event.seq}`), h("span", { class: "event-key" }, event.key ?? ""), h("span", { class: "event-preview" }, preview(event.payload, 240))));
    let isFilled = false;
    const fill = () => {
        if (isFilled || !row.open)
            return;
        isFilled = true;
        append(row, eventDetail(event, around));
    };
    row.addEventListener("toggle", fill);
    if (around) {
        row.open = true;
        fill();
    }
    return row;
}
function eventDetail(event, around) {
    const text = JSON.stringify(event.payload) ?? "";
    const shown = h("div", { class: "payload" }, jsonView(event.payload));
    let isRaw = false;
    const toggle = button("Raw", () => {
        isRaw = !isRaw;
        toggle.textContent = isRaw ? "Tree" : "Raw";
        replace(shown, isRaw ? rawText(event.payload) : jsonView(event.payload));
    }, { class: "button button-quiet" });
    const copyButton = button("Copy", () => void copy(JSON.stringify(event, null, 2)).then((done) => toast(done ? "The event was copied." : "The browser did not allow to copy.", done ? "good" : "bad")), { class: "button button-quiet" });
    const chain = h("div", { class: "chain" });
    const follow = button("Causes and effects", () => void showChain(event, chain), { class: "button button-quiet", hidden: around !== undefined });
    if (around)
        drawChain(chain, around);
    return h("div", { class: "event-detail" }, h("dl", { class: "facts" }, fact("id", h("a", { href: eventLink(event) }, event.id)), fact("position", `#${event.seq}`), fact("time", dateTime(event.ts)), event.key !== undefined && fact("key", h("a", { href: address("topics", [event.topic], { tab: "keys", key: event.key }) }, event.key)), event.sid !== undefined && fact("sid", event.sid), event.partition !== undefined && fact("partition", event.partition), event.tags && fact("tags", event.tags.map((tag) => [h("span", { class: "tag" }, tag), " "])), event.caused_by && fact("caused by", event.caused_by.map((id) => [causeLink(event, id), " "]))), event.headers && h("table", { class: "headers" }, h("caption", {}, "Headers"), h("tbody", {}, Object.entries(event.headers).map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value))))), h("div", { class: "payload-head" }, h("span", {}, "Payload ", h("span", { class: "muted" }, bytes(text.length))), h("span", { class: "actions" }, toggle, copyButton, follow)), shown, chain);
}
export function eventLink(event) {
    return address("topics", [event.topic], { tab: "browse", id: event.id });
}
function fact(name, ...value) {
    return h("div", {}, h("dt", {}, name), h("dd", {}, ...value));
}
function rawText(payload) {
    const text = JSON.stringify(payload, null, 2) ?? "";
    const isCut = text.length > MAX_RAW_CHARS;
    return h("div", {}, h("pre", { class: "raw", tabindex: "0" }, isCut ? `${text.slice(0, MAX_RAW_CHARS)}…` : text), isCut && h("p", { class: "muted" }, `Cut at ${bytes(MAX_RAW_CHARS)}; Copy has all of it.`));
}
async function showChain(event, into) {
    replace(into, loading("Searching"));
    try {
        drawChain(into, await get("/causes", { topic: event.topic, id: event.id }));
    }
    catch (error) {
        replace(into, errorNotice(error));
    }
}
function drawChain(into, { causes, unknown, effects, complete }) {
    replace(into, chainPart("Caused by", causes, unknown.length > 0 ? `${unknown.length} of its causes are not kept here.` : "Nothing is named as its cause."), chainPart("Caused", effects, "No event names it as a cause."), !complete && h("p", { class: "muted" }, "Not everything that came after it was searched."));
}
function causeLink(event, id) {
    const link = h("a", { href: eventLink(event) }, id);
    link.addEventListener("click", (click) => {
        click.preventDefault();
        void get("/causes", { topic: event.topic, id: event.id }).then(({ causes }) => {
            const cause = causes.find((cause) => cause.id === id);
            if (cause)
                go(eventLink(cause));
            else
                toast("This cause is not kept here, or your token may not read it.", "bad");
        }).catch((error) => toast(messageOf(error), "bad"));
    });
    return link;
}
function chainPart(title, events, nothing) {
    return h("section", {}, h("h2", {}, title), events.length === 0
        ? h("p", { class: "muted" }, nothing)
        : h("ul", { class: "chain-list" }, events.map((event) => h("li", {}, h("a", { href: eventLink(event) }, `${event.topic} #${event.seq}`), " ", h("span", { class: "muted" }, `${clock(event.ts)} ${preview(event.payload, 80)}`)))));
}
