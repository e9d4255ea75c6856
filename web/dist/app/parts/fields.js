import { h } from "../dom.js";
let lastId = 0;
export function field(label, control, hint) {
    if (!control.id)
        control.id = `field-${(lastId += 1)}`;
    const hintElement = hint ? h("small", { class: "hint", id: `${control.id}-hint` }, hint) : undefined;
    if (hintElement)
        control.setAttribute("aria-describedby", hintElement.id);
    return h("div", { class: "field" }, h("label", { for: control.id }, label), control, hintElement);
}
export function input(attributes = {}) {
    return h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...attributes });
}
export function select(options, chosen, attributes = {}) {
    const element = h("select", attributes, options.map(([value, label]) => h("option", { value, selected: value === chosen }, label)));
    return element;
}
export function checkbox(label, isChecked = false) {
    const box = h("input", { type: "checkbox", checked: isChecked });
    return { element: h("label", { class: "check" }, box, label), input: box };
}
export function button(label, onclick, attributes = {}) {
    return h("button", { type: "button", class: "button", onclick, ...attributes }, label);
}
export function guard(element, allowed, what) {
    const isAllowed = allowed === "all";
    element.toggleAttribute("data-forbidden", !isAllowed);
    if (isAllowed) {
        element.removeAttribute("aria-disabled");
        element.removeAttribute("title");
        return element;
    }
    element.setAttribute("aria-disabled", "true");
    element.title = `Your token may not ${what}.`;
    element.addEventListener("click", stop, true);
    return element;
}
function stop(event) {
    if (!event.currentTarget.hasAttribute("data-forbidden"))
        return;
    event.preventDefault();
    event.stopImmediatePropagation();
}
