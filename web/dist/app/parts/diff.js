import { h } from "../dom.js";
import { preview } from "../format.js";
const MAX_CHANGES = 50;
export function differences(before, after) {
    const changes = [];
    collect("", before, after, changes);
    if (changes.length === 0)
        return h("p", { class: "muted" }, "the same again");
    return h("ul", { class: "diff" }, changes.slice(0, MAX_CHANGES).map((change) => h("li", {}, h("code", {}, change.path || "payload"), " ", "before" in change && h("del", { class: "diff-removed" }, preview(change.before, 120)), " ", "after" in change && h("ins", { class: "diff-added" }, preview(change.after, 120)))), changes.length > MAX_CHANGES && h("li", { class: "muted" }, `and ${changes.length - MAX_CHANGES} more`));
}
function collect(path, before, after, changes) {
    if (JSON.stringify(before) === JSON.stringify(after))
        return;
    if (!isObject(before) || !isObject(after))
        return void changes.push({ path, before, after });
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
        const inner = path ? `${path}.${name}` : name;
        if (!(name in before))
            changes.push({ path: inner, after: after[name] });
        else if (!(name in after))
            changes.push({ path: inner, before: before[name] });
        else
            collect(inner, before[name], after[name], changes);
    }
}
function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}
