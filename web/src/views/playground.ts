/** Every HTTP request of this server explained and run, from its own OpenAPI document; and WebSocket frames. */

import { currentToken, get, raw } from "../api.js";
import { h, replace } from "../dom.js";
import * as format from "../format.js";
import type { Page, View } from "../page.js";
import { confirmDialog } from "../parts/dialog.js";
import { field, input } from "../parts/fields.js";
import { jsonView } from "../parts/json_view.js";
import { command, errorNotice, loading } from "../parts/notice.js";
import { address, type Route } from "../router.js";
import { exampleOf, operationsOf, type Document, type Operation } from "./playground_document.js";
import { frames } from "./playground_frames.js";
import { type Call, snippets } from "./playground_snippets.js";

/** Text of a reply that is shown. */
const MAX_SHOWN_CHARS = 200_000;
/** A stream is read for this long. */
const STREAM_MS = 3_000;

export const playground: View = (route): Page => {
  const body = h("div", { class: "playground" }, loading());
  void show(route, body).catch((error: unknown) => replace(body, errorNotice(error)));
  return { title: "Playground", element: h("div", { class: "view" }, h("h1", {}, "Playground"), h("p", { class: "muted" }, "Requests go to this server, with your token, and do what they say."), body) };
};

async function show(route: Route, body: HTMLElement): Promise<void> {
  const document = await get<Document>("/openapi.json");
  const operations = operationsOf(document);
  const chosen = route.names[0] ?? "publish";
  const list = h("nav", { class: "operations", "aria-label": "Requests" }, h("ul", {},
    h("li", {}, h("a", { href: address("playground", ["frames"]), "aria-current": chosen === "frames" ? "page" : null }, h("span", { class: "method method-ws" }, "WS"), "WebSocket frames")),
    operations.map((operation) => h("li", {}, h("a", { href: address("playground", [operation.id]), "aria-current": operation.id === chosen ? "page" : null, title: operation.summary },
      h("span", { class: `method method-${operation.method.toLowerCase()}` }, operation.method), operation.path)))));
  const operation = operations.find(({ id }) => id === chosen);
  replace(body, list, chosen === "frames" || !operation ? frames() : form(document, operation));
  const current = list.querySelector<HTMLElement>("[aria-current]");
  if (current) list.scrollTop += current.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
}

function form(document: Document, operation: Operation): HTMLElement {
  const controls = operation.parameters.map((parameter) => {
    const control = input({ required: parameter.required, placeholder: parameter.schema.default === undefined ? "" : String(parameter.schema.default) });
    if (parameter.required) control.value = EXAMPLES[parameter.name] ?? "";
    return { parameter, control };
  });
  const required = controls.filter(({ parameter }) => parameter.required);
  const optional = controls.filter(({ parameter }) => !parameter.required);
  const body = operation.bodyType === undefined ? undefined : h("textarea", { rows: 8, class: "code", spellcheck: "false" }, exampleOf(document, operation));
  const result = h("div", { class: "result" });
  const code = h("div", { class: "snippets" });
  const call = (): Call => {
    const value = (place: string): [string, string][] => controls.filter(({ parameter, control }) => parameter.in === place && control.value !== "").map(({ parameter, control }) => [parameter.name, control.value]);
    const path = value("path").reduce((path, [name, text]) => path.replace(`{${name}}`, encodeURIComponent(text)), operation.path);
    return { operation, path, query: Object.fromEntries(value("query")), headers: Object.fromEntries(value("header")), body: body?.value };
  };
  const update = (): void => replace(code, h("h3", {}, "The same as code"), snippets(call(), currentToken() !== undefined).map(([name, text]) => h("div", {}, h("h4", {}, name), command(text))));
  const submit = h("button", { type: "submit", class: `button ${operation.isDestructive ? "button-danger" : "button-primary"}` }, `Send ${operation.method}`);
  const element = h("form", { class: "form operation" }, h("h2", {}, operation.summary), h("p", {}, h("code", {}, `${operation.method} ${operation.path}`)),
    required.map(({ parameter, control }) => field(parameter.name, control, parameter.description)), body && field(`Body, ${operation.bodyType}`, body),
    optional.length > 0 && h("details", { open: body === undefined }, h("summary", {}, format.plural(optional.length, "optional parameter")),
      h("div", { class: "form optional" }, optional.map(({ parameter, control }) => field(`${parameter.name} (optional)`, control, parameter.description)))),
    h("div", {}, submit), result, code);
  element.addEventListener("input", update);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    const send = (): Promise<void> => run(call(), operation, result);
    if (!operation.isDestructive) return void send();
    void confirmDialog(`Send ${operation.method} ${call().path}?`, `${operation.summary}. It is done for real.`, "Send", send);
  });
  update();
  return element;
}

const EXAMPLES: Record<string, string> = { topic: "hello", group: "readers", key: "web1", id: "" };

async function run(call: Call, operation: Operation, result: HTMLElement): Promise<void> {
  replace(result, loading("Sending"));
  const started = performance.now();
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), STREAM_MS * 3);
  try {
    const headers = { ...call.headers, ...(operation.bodyType ? { "content-type": operation.bodyType } : {}) };
    const response = await raw(operation.method, call.path, call.query, call.body, headers, stop.signal);
    const text = await textOf(response, stop);
    const ms = Math.round(performance.now() - started);
    replace(result, h("p", { role: "status" }, h("span", { class: `badge ${response.ok ? "badge-good" : "badge-warn"}` }, `${response.status} ${response.statusText}`), ` ${ms} ms · ${format.bytes(text.length)}`), shown(response, text));
  } catch (error) {
    replace(result, errorNotice(error));
  } finally {
    clearTimeout(timer);
  }
}

/** The text of a reply; a stream that does not end is read for a while. */
async function textOf(response: Response, stop: AbortController): Promise<string> {
  if (response.headers.get("content-type") !== "text/event-stream") return response.text();
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  const timer = setTimeout(() => stop.abort(), STREAM_MS);
  try {
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) text += decoder.decode(part.value, { stream: true });
  } catch {
    text += `(it goes on; this is what came in ${STREAM_MS / 1000} s)`;
  }
  clearTimeout(timer);
  return text;
}

function shown(response: Response, text: string): HTMLElement {
  if (text === "") return h("p", { class: "muted" }, "The reply has no body.");
  if (response.headers.get("content-type")?.startsWith("application/json") && text.length < MAX_SHOWN_CHARS) {
    return h("div", { class: "payload" }, jsonView(JSON.parse(text)));
  }
  return h("pre", { class: "raw", tabindex: "0" }, text.slice(0, MAX_SHOWN_CHARS));
}
