/** Labelled inputs and buttons, and what a token does not allow. */

import { type Attributes, type Child, h } from "../dom.js";
import type { Allowed } from "../model.js";

let lastId = 0;

/** A label above its control. */
export function field(label: string, control: HTMLElement, hint?: string): HTMLElement {
  if (!control.id) control.id = `field-${(lastId += 1)}`;
  const hintElement = hint ? h("small", { class: "hint", id: `${control.id}-hint` }, hint) : undefined;
  if (hintElement) control.setAttribute("aria-describedby", hintElement.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, hintElement);
}

export function input(attributes: Attributes = {}): HTMLInputElement {
  return h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...attributes });
}

export function select(options: readonly (readonly [string, string])[], chosen: string, attributes: Attributes = {}): HTMLSelectElement {
  const element = h("select", attributes, options.map(([value, label]) => h("option", { value, selected: value === chosen }, label)));
  return element;
}

export function checkbox(label: string, isChecked = false): { element: HTMLElement; input: HTMLInputElement } {
  const box = h("input", { type: "checkbox", checked: isChecked });
  return { element: h("label", { class: "check" }, box, label), input: box };
}

export function button(label: Child, onclick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return h("button", { type: "button", class: "button", onclick, ...attributes }, label);
}

/** Greys a button out where the token does not allow what it does, and says so. It can still be reached and read. */
export function guard(element: HTMLButtonElement, allowed: Allowed, what: string): HTMLButtonElement {
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

function stop(event: Event): void {
  if (!(event.currentTarget as Element).hasAttribute("data-forbidden")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}
