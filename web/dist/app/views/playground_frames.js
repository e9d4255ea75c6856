import { currentToken } from "../api.js";
import { h, replace, setText } from "../dom.js";
import { clock } from "../format.js";
import { button, field, select } from "../parts/fields.js";
const MAX_LINES = 200;
const FRAMES = [
    ["PUBLISH", "Store an event; the OK comes when it is durable.", '{"op":"PUBLISH","topic":"hello","payload":{"text":"hi"},"corr":"1"}'],
    ["SUBSCRIBE", "Become a member of a group; EVENT frames come.", '{"op":"SUBSCRIBE","topic":"hello","group":"readers","opts":{"from":"earliest","maxInFlight":10}}'],
    ["ACK", "Settle an event; with publish both happen or neither.", '{"op":"ACK","topic":"hello","group":"readers","id":"…"}'],
    ["NACK", "Give an event back; it comes again after a while.", '{"op":"NACK","topic":"hello","group":"readers","id":"…","reason":"not now","delay_ms":1000}'],
    ["MODACK", "Hold an event longer.", '{"op":"MODACK","topic":"hello","group":"readers","id":"…","extend_ms":30000}'],
    ["PAUSE", "Get no more events for now.", '{"op":"PAUSE","topic":"hello","group":"readers"}'],
    ["RESUME", "Go on.", '{"op":"RESUME","topic":"hello","group":"readers"}'],
    ["UNSUBSCRIBE", "Leave the group.", '{"op":"UNSUBSCRIBE","topic":"hello","group":"readers"}'],
];
export function frames() {
    const kind = select(FRAMES.map(([name]) => [name, name]), "PUBLISH");
    const hint = h("p", { class: "muted" });
    const text = h("textarea", { rows: 5, class: "code", spellcheck: "false" });
    const lines = h("ol", { class: "frames", "aria-live": "polite" });
    const state = h("span", { class: "muted", role: "status" }, "not connected");
    let socket;
    const add = (direction, line) => {
        lines.prepend(h("li", { class: direction === "sent" ? "frame-sent" : "frame-got" }, h("b", {}, `${clock(Date.now())} ${direction}`), " ", h("code", {}, line.slice(0, 4_000))));
        while (lines.children.length > MAX_LINES)
            lines.lastElementChild?.remove();
    };
    const prepare = () => {
        const frame = FRAMES.find(([name]) => name === kind.value);
        setText(hint, frame?.[1] ?? "");
        text.value = frame?.[2] ?? "";
    };
    kind.addEventListener("change", prepare);
    prepare();
    const open = () => new Promise((resolve, reject) => {
        if (socket?.readyState === WebSocket.OPEN)
            return resolve(socket);
        const opened = new WebSocket(`${location.origin.replace(/^http/, "ws")}/ws`);
        socket = opened;
        opened.onopen = () => {
            setText(state, "connected");
            const token = currentToken();
            if (token)
                opened.send(JSON.stringify({ op: "AUTH", token }));
            resolve(opened);
        };
        opened.onmessage = ({ data }) => {
            add("got", String(data));
            const event = /"event":\{"id":"([^"]+)"/.exec(String(data))?.[1];
            if (event)
                text.value = text.value.replace('"id":"…"', `"id":${JSON.stringify(event)}`);
        };
        opened.onclose = () => setText(state, "not connected");
        opened.onerror = () => reject(new Error("the socket could not be opened"));
    });
    const submit = h("button", { type: "submit", class: "button button-primary" }, "Send frame");
    const form = h("form", { class: "form operation" }, h("h2", {}, "WebSocket frames"), field("Frame", kind), hint, field("JSON", text), h("div", { class: "actions" }, submit, button("Disconnect", () => socket?.close()), button("Clear", () => replace(lines)), state), lines);
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        void open().then((ready) => {
            ready.send(text.value);
            add("sent", text.value);
        }).catch((error) => add("got", error.message));
    });
    return form;
}
