/** Words in place of data: errors, empty lists, what is still loading. */

import { ApiError } from "../api.js";
import { type Child, h } from "../dom.js";

/** An error, with what to do about it where that is known. */
export function errorNotice(error: unknown, retry?: () => void): HTMLElement {
  const { title, text } = inWords(error);
  return h("div", { class: "notice notice-error", role: "alert" },
    h("strong", {}, title), h("p", {}, text),
    retry && h("button", { type: "button", class: "button", onclick: retry }, "Try again"));
}

/** An empty list that says what would fill it. */
export function emptyNotice(title: string, ...children: Child[]): HTMLElement {
  return h("div", { class: "notice notice-empty" }, h("strong", {}, title), ...children);
}

export function loading(what = "Loading"): HTMLElement {
  return h("p", { class: "loading", role: "status" }, `${what}…`);
}

/** A command to copy into a shell. */
export function command(text: string): HTMLElement {
  const button = h("button", { type: "button", class: "button button-quiet", "aria-label": `Copy: ${text}` }, "Copy");
  button.addEventListener("click", () => {
    void copy(text).then((done) => (button.textContent = done ? "Copied" : "Select and copy"));
    setTimeout(() => (button.textContent = "Copy"), 2_000);
  });
  return h("div", { class: "command" }, h("code", {}, text), button);
}

/** Puts text on the clipboard; false where the browser does not allow it. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function messageOf(error: unknown): string {
  return inWords(error).text;
}

function inWords(error: unknown): { title: string; text: string } {
  const text = error instanceof Error ? error.message : String(error);
  if (!(error instanceof ApiError)) return { title: "Something went wrong", text };
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

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
