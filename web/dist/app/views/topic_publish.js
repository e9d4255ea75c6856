import { queryText, raw, segment } from "../api.js";
import { h, replace } from "../dom.js";
import * as format from "../format.js";
import { eventLink } from "../parts/event_view.js";
import { field, guard, input, select } from "../parts/fields.js";
import { command, errorNotice } from "../parts/notice.js";
import { ApiError } from "../api.js";
import { withAccess } from "../rights.js";
export function publish(topic) {
    const payload = h("textarea", { rows: 8, spellcheck: "false", class: "code" }, '{\n  "text": "hi"\n}');
    const key = input();
    const id = input({ maxlength: 64 });
    const tags = input({ placeholder: "#test, #manual" });
    const headers = h("textarea", { rows: 2, spellcheck: "false", class: "code", placeholder: "x-source: dashboard" });
    const submit = h("button", { type: "submit", class: "button button-primary" }, "Publish");
    const outcome = h("div", { role: "status" });
    const form = h("form", { class: "form" }, field("Payload", payload, "JSON. It is stored as it is written here."), field("Key", key, "For compaction and ordering; may be left out."), field("Id", id, "Publishing the same id twice stores it once; made by the server where left out."), field("Tags", tags), field("Headers", headers, "One a line, with names that begin with x-."), h("div", {}, submit), outcome);
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        void send();
    });
    const send = async () => {
        try {
            JSON.parse(payload.value);
        }
        catch (error) {
            return replace(outcome, errorNotice(new Error(`The payload is not JSON: ${error.message}`)));
        }
        try {
            const own = Object.fromEntries(headers.value.split("\n").map((line) => line.split(/:\s*/, 2)).filter((parts) => parts.length === 2));
            const query = { key: key.value, id: id.value, tags: tags.value.replace(/\s/g, "") };
            const response = await raw("POST", `/publish/${segment(topic)}`, query, payload.value, { "content-type": "application/json", ...own });
            const reply = (await response.json());
            if (!response.ok)
                throw new ApiError(reply.code ?? "", reply.error ?? "", response.status);
            replace(outcome, h("div", { class: "notice notice-good" }, h("strong", {}, reply.duplicate ? "It was there already" : "Published"), h("p", {}, h("a", { href: eventLink({ topic, id: reply.id }) }, `#${reply.seq} ${reply.id}`), ` · ${reply.durability}`)));
        }
        catch (error) {
            replace(outcome, errorNotice(error));
        }
    };
    withAccess(({ publish: allowed }) => guard(submit, allowed, "publish to this topic"), topic);
    return { element: form };
}
export function exportTab(topic) {
    const from = input({ type: "datetime-local", step: "0.001" });
    const to = input({ type: "datetime-local", step: "0.001" });
    const key = input();
    const kind = select([["1", "NDJSON, an event on each line"], ["0", "a JSON array"]], "1");
    const shown = h("div", {});
    const submit = h("button", { type: "submit", class: "button button-primary" }, "Download");
    const query = () => ({
        topic, fromTs: from.value ? new Date(from.value).getTime() : undefined, toTs: to.value ? new Date(to.value).getTime() : undefined, key: key.value, ndjson: kind.value,
    });
    const form = h("form", { class: "form" }, field("From", from, "From the first event where left out."), field("To", to), field("Key", key, "Only events with this key."), field("As", kind), h("div", {}, submit), shown);
    const update = () => replace(shown, h("p", { class: "muted" }, "The same in a shell, for more than fits into a tab:"), command(`curl --compressed '${location.origin}/export${queryText(query())}' > ${topic.slice(0, 80)}.${kind.value === "1" ? "ndjson" : "json"}`));
    form.addEventListener("input", update);
    update();
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        void download();
    });
    const download = async () => {
        submit.disabled = true;
        try {
            const response = await raw("GET", "/export", query());
            if (!response.ok)
                throw new ApiError("export", (await response.json()).error, response.status);
            const blob = await response.blob();
            const link = h("a", { href: URL.createObjectURL(blob), download: `${topic.slice(0, 80)}.${kind.value === "1" ? "ndjson" : "json"}` });
            link.click();
            URL.revokeObjectURL(link.href);
            replace(shown, h("p", { role: "status" }, `${format.bytes(blob.size)} were exported.`));
        }
        catch (error) {
            replace(shown, errorNotice(error));
        }
        finally {
            submit.disabled = false;
        }
    };
    withAccess(({ subscribe }) => guard(submit, subscribe, "read this topic"), topic);
    return { element: form };
}
