/** The projectors that run in the server, as part of the overview. */

import { h } from "../dom.js";
import * as format from "../format.js";
import type { ProjectorSummary } from "../model.js";
import { address } from "../router.js";

/** How many there are, and how they are doing in a word. */
export function projectorsInShort(projectors: ProjectorSummary[] = []): [string, string] {
  const failing = projectors.filter(({ error }) => error !== undefined).length;
  const behind = projectors.reduce((sum, { lag }) => sum + lag, 0);
  const word = projectors.length === 0 ? "none turned on" : failing > 0 ? `${format.count(failing)} failing` : behind > 0 ? `${format.short(behind)} behind` : "caught up";
  return [format.count(projectors.length), word];
}

/** A row for each; nothing where none runs. */
export function projectorCard(projectors: ProjectorSummary[] = []): HTMLElement | undefined {
  if (projectors.length === 0) return undefined;
  const head = h("tr", {}, ["Projector", "Reads", "Emits to", "State", "Lag", "Emitted", "Rejected"].map((name, at) => h("th", { scope: "col", class: at > 3 ? "is-number" : "" }, name)));
  return h("section", { class: "card", "aria-labelledby": "projectors" }, h("h2", { id: "projectors" }, "Projectors"),
    h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Table of projectors" }, h("table", { class: "table" }, h("thead", {}, head), h("tbody", {}, projectors.map(row)))));
}

function row(projector: ProjectorSummary): HTMLElement {
  const topic = (name: string): HTMLElement => h("a", { href: address("topics", [name]), class: "long-name" }, name);
  return h("tr", {}, h("th", { scope: "row" }, projector.name), h("td", {}, topic(projector.input)), h("td", {}, topic(projector.output)), h("td", {}, state(projector)),
    h("td", { class: "is-number" }, format.short(projector.lag)), h("td", { class: "is-number" }, format.short(projector.emitted)),
    h("td", { class: "is-number", title: projector.last_rejection }, format.short(projector.rejected)));
}

function state({ error, standby, lag }: ProjectorSummary): HTMLElement {
  if (error !== undefined) return h("span", { class: "badge badge-warn", title: error }, "failing");
  if (standby) return h("span", { class: "badge badge-plain", title: "Another server runs it." }, "standby");
  return h("span", { class: "badge badge-good" }, lag > 0 ? "catching up" : "caught up");
}
