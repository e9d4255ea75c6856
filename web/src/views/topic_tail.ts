/** Events as they come, over the SDK's WebSocket, with a cap on what is drawn. */

import { currentToken } from "../api.js";
import { h, replace, setText } from "../dom.js";
import * as format from "../format.js";
import type { EventRecord } from "../model.js";
import { eventRow } from "../parts/event_view.js";
import { button, field, input, select } from "../parts/fields.js";
import { messageOf } from "../parts/notice.js";
import type { Client } from "../../../sdk/typescript/src/client.js";
import type { Tab } from "./topic.js";

/** Rows that are kept on the page. */
const MAX_ROWS = 200;
/** Events that wait to be drawn; beyond it the oldest are passed over. */
const MAX_WAITING = 1_000;
const DRAW_MS = 250;

export function tail(topic: string): Tab {
  return new Tail(topic);
}

class Tail implements Tab {
  readonly element: HTMLElement;
  readonly #rows = h("div", { class: "events", "aria-live": "off" });
  readonly #status = h("p", { class: "muted", role: "status" });
  readonly #filter = input({ type: "search", placeholder: "in payload, key, headers" });
  readonly #cap = select([["5", "5 a second"], ["20", "20 a second"], ["100", "100 a second"]], "20");
  readonly #pause: HTMLButtonElement;
  readonly #timer: number;
  #client: Client | undefined;
  #waiting: EventRecord[] = [];
  #isPaused = false;
  #isGone = false;
  #seen = 0;
  #matched = 0;
  #drawn = 0;
  #state = "connecting";
  #lately: number[] = [];
  readonly #onVisibility = (): void => (document.hidden ? this.#disconnect() : this.#connect());

  constructor(readonly topic: string) {
    this.#pause = button("Pause", () => this.#toggle(), { class: "button button-primary" });
    const clear = button("Clear", () => {
      replace(this.#rows);
      this.#seen = this.#matched = this.#drawn = 0;
      this.#waiting = [];
    });
    this.element = h("div", {}, h("div", { class: "toolbar" }, field("Filter", this.#filter), field("Draw at most", this.#cap), this.#pause, clear), this.#status, this.#rows);
    this.#timer = window.setInterval(() => this.#draw(), DRAW_MS);
    document.addEventListener("visibilitychange", this.#onVisibility);
    if (!document.hidden) this.#connect();
  }

  dispose(): void {
    this.#isGone = true;
    clearInterval(this.#timer);
    document.removeEventListener("visibilitychange", this.#onVisibility);
    this.#disconnect();
  }

  #connect(): void {
    if (this.#client || this.#isGone) return;
    void this.#open().catch((error: unknown) => (this.#state = `not connected: ${messageOf(error)}`));
  }

  async #open(): Promise<void> {
    const { Client } = await import("../../../sdk/typescript/src/client.js");
    if (this.#isGone || this.#client) return;
    const token = currentToken();
    const client = new Client({ url: location.origin, waitForServer: true, reconnect: { capMs: 3_000 }, ...(token ? { token } : {}) });
    this.#client = client;
    client.on("state", (state) => (this.#state = state));
    client.on("closed", ({ error }) => (this.#state = error.code === "closed" ? "closed" : `ended: ${error.message}`));
    await client.subscribe(this.topic, null, ({ event }) => this.#take(event as EventRecord), { maxInFlight: 500, concurrency: 500 });
  }

  #disconnect(): void {
    const client = this.#client;
    this.#client = undefined;
    void client?.close();
  }

  #take(event: EventRecord): void {
    this.#seen += 1;
    const wanted = this.#filter.value.toLowerCase();
    if (wanted && !JSON.stringify([event.key, event.headers, event.tags, event.payload]).toLowerCase().includes(wanted)) return;
    this.#matched += 1;
    if (this.#isPaused) return;
    this.#waiting.push(event);
    if (this.#waiting.length > MAX_WAITING) this.#waiting.splice(0, this.#waiting.length - MAX_WAITING);
  }

  /** Draws the newest of what waits, as many as the cap allows; what is passed over is only counted. */
  #draw(): void {
    const allowed = Math.max(1, Math.round((Number(this.#cap.value) * DRAW_MS) / 1000));
    const next = this.#waiting.slice(-allowed);
    this.#waiting = [];
    this.#drawn += next.length;
    if (next.length > 0) {
      this.#rows.prepend(...next.reverse().map((event) => eventRow(event)));
      const rows = [...this.#rows.children];
      for (const row of rows.slice(MAX_ROWS)) if (!(row as HTMLDetailsElement).open) row.remove();
    }
    this.#lately.push(this.#seen);
    if (this.#lately.length > 9) this.#lately.shift();
    const perSecond = ((this.#lately.at(-1) ?? 0) - (this.#lately[0] ?? 0)) / Math.max(0.001, ((this.#lately.length - 1) * DRAW_MS) / 1000);
    const passed = this.#isPaused ? 0 : this.#matched - this.#drawn - this.#waiting.length;
    const state = this.#state === "connected" ? (this.#isPaused ? "Paused" : this.#seen === 0 ? "Waiting for events" : "Live") : this.#state.charAt(0).toUpperCase() + this.#state.slice(1);
    setText(this.#status, `${state} · ${format.rate(Math.max(0, perSecond))} · ${format.count(this.#seen)} seen${this.#matched < this.#seen ? `, ${format.count(this.#matched)} match` : ""}${passed > 0 ? `, ${format.count(passed)} not drawn` : ""}`);
  }

  #toggle(): void {
    this.#isPaused = !this.#isPaused;
    this.#pause.textContent = this.#isPaused ? "Go on" : "Pause";
    this.#drawn = this.#matched;
  }
}
