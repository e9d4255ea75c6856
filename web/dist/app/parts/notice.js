import { ApiError } from "../api.js";
import { h } from "../dom.js";
export function errorNotice(error, retry) {
    const { title, text } = inWords(error);
    return h("div", { class: "notice notice-error", role: "alert" }, h("strong", {}, title), h("p", {}, text), retry && h("button", { type: "button", class: "button", onclick: retry }, "Try again"));
}
export function emptyNotice(title, ...children) {
    return h("div", { class: "notice notice-empty" }, h("strong", {}, title), ...children);
}
export function loading(what = "Loading") {
    return h("p", { class: "loading", role: "status" }, `${what}…`);
}
export function command(text) {
    const button = h("button", { type: "button", class: "button button-quiet", "aria-label": `Copy: ${text}` }, "Copy");
    button.addEventListener("click", () => {
        void copy(text).then((done) => (button.textContent = done ? "Copied" : "Select and copy"));
        setTimeout(() => (button.textContent = "Copy"), 2_000);
    });
    return h("div", { class: "command" }, h("code", {}, text), button);
}
export async function copy(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    }
    catch {
        return false;
    }
}
export function messageOf(error) {
    return inWords(error).text;
}
function inWords(error) {
    const text = error instanceof Error ? error.message : String(error);
    if (!(error instanceof ApiError))
        return { title: "Something went wrong", text };
    switch (error.code) {
        case "unreachable":
            return { title: "Not connected", text: "The server cannot be reached. The page tries again by itself." };
        case "forbidden":
            return { title: "Not allowed", text: sentence(text) };
        case "unknown_topic":
            return { title: "No such topic", text: sentence(text) };
        case "unknown_group":
            return { title: "No such group", text: sentence(text) };
        default:
            return { title: `Rejected: ${error.code}`, text: sentence(text) };
    }
}
function sentence(text) {
    const first = text.charAt(0).toUpperCase() + text.slice(1);
    return /[.!?]$/.test(first) ? first : `${first}.`;
}
