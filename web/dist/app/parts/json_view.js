import { append, h } from "../dom.js";
import { ExactNumber } from "../exact.js";
import { bytes } from "../format.js";
const MAX_ITEMS = 100;
const MAX_CHARS = 2_000;
const OPEN_DEPTH = 2;
const OPEN_ITEMS = 20;
export function jsonView(value, depth = 0) {
    if (value === null)
        return h("span", { class: "json-null" }, "null");
    if (typeof value === "string")
        return stringView(value);
    if (typeof value === "number" || value instanceof ExactNumber)
        return h("span", { class: "json-number" }, String(value));
    if (typeof value === "boolean")
        return h("span", { class: "json-boolean" }, String(value));
    if (typeof value !== "object")
        return h("span", { class: "json-null" }, "nothing");
    const isList = Array.isArray(value);
    const entries = Object.entries(value);
    const words = isList ? `${entries.length} items` : `${entries.length} fields`;
    if (entries.length === 0)
        return h("span", { class: "json-null" }, isList ? "[]" : "{}");
    const details = h("details", { class: "json-node" }, h("summary", {}, isList ? "[ ] " : "{ } ", h("span", { class: "muted" }, words)));
    let isFilled = false;
    const open = () => {
        if (isFilled)
            return;
        isFilled = true;
        append(details, items(entries, 0, depth));
    };
    details.addEventListener("toggle", open);
    if (depth < OPEN_DEPTH && entries.length <= OPEN_ITEMS) {
        open();
        details.open = true;
    }
    return details;
}
function items(entries, from, depth) {
    const list = h("ul", { class: "json-items" }, entries.slice(from, from + MAX_ITEMS).map(([name, value]) => h("li", {}, h("span", { class: "json-key" }, name), ": ", jsonView(value, depth + 1))));
    const rest = entries.length - from - MAX_ITEMS;
    if (rest > 0) {
        const more = h("button", { type: "button", class: "button button-quiet" }, `Show ${Math.min(rest, MAX_ITEMS)} of ${rest} more`);
        more.addEventListener("click", () => more.parentElement?.replaceWith(...items(entries, from + MAX_ITEMS, depth).childNodes));
        append(list, h("li", {}, more));
    }
    return list;
}
function stringView(value) {
    const quoted = JSON.stringify(value);
    if (quoted.length <= MAX_CHARS)
        return h("span", { class: "json-string" }, quoted);
    const text = h("span", { class: "json-string" }, `${quoted.slice(0, MAX_CHARS)}…`);
    const more = h("button", { type: "button", class: "button button-quiet" }, `Show all ${bytes(value.length)}`);
    more.addEventListener("click", () => {
        text.textContent = quoted;
        more.remove();
    });
    return h("span", {}, text, " ", more);
}
