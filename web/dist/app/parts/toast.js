import { h } from "../dom.js";
const SHOWN_MS = 6_000;
const MAX_SHOWN = 4;
const region = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
export function toastRegion() {
    return region;
}
export function toast(text, kind = "plain") {
    const shown = h("div", { class: `toast toast-${kind}` }, text);
    region.append(shown);
    while (region.children.length > MAX_SHOWN)
        region.firstElementChild?.remove();
    setTimeout(() => shown.remove(), SHOWN_MS);
}
