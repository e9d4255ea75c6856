/** Events over time as bars. A range is chosen by dragging over it, or by a click on a bar. */

import { h, replace, svg } from "../dom.js";
import { clock, count, dateTime } from "../format.js";
import type { HistogramReply } from "../model.js";

const HEIGHT = 64;

export class TimeHistogram {
  readonly element: HTMLElement;
  readonly #plot: HTMLElement;
  readonly #label: HTMLElement;
  #data: HistogramReply | undefined;
  #from: number | undefined;

  /** @param onChoose gets the first and the last millisecond of what was chosen. */
  constructor(readonly onChoose: (fromTs: number, toTs: number) => void) {
    this.#plot = h("div", { class: "histogram-plot", role: "img" });
    this.#label = h("div", { class: "histogram-label" });
    this.element = h("div", { class: "histogram", hidden: true }, this.#plot, this.#label);
    this.#plot.addEventListener("pointerdown", (event) => this.#begin(event));
    this.#plot.addEventListener("pointermove", (event) => this.#move(event));
    this.#plot.addEventListener("pointerup", (event) => this.#end(event));
    this.#plot.addEventListener("pointerleave", () => this.#describe());
    new ResizeObserver(() => this.#draw()).observe(this.#plot);
  }

  update(data: HistogramReply): void {
    this.#data = data;
    this.element.hidden = data.counts.length === 0;
    const total = data.counts.reduce((sum, value) => sum + value, 0);
    this.#plot.setAttribute("aria-label", `${count(total)} events between ${dateTime(data.from_ts)} and ${dateTime(data.to_ts)}`);
    this.#draw();
    this.#describe();
  }

  #draw(): void {
    const width = this.#plot.clientWidth;
    const data = this.#data;
    if (!data || width === 0) return;
    const top = Math.max(1, ...data.counts);
    const step = width / data.counts.length;
    const bars = data.counts.map((value, at) => {
      const height = value === 0 ? 0 : Math.max(2, (value / top) * (HEIGHT - 4));
      return svg("rect", { class: "bar", x: at * step + 0.5, y: HEIGHT - height, width: Math.max(1, step - 1), height });
    });
    replace(this.#plot, svg("svg", { width, height: HEIGHT, "aria-hidden": "true" }, svg("rect", { class: "brush", y: 0, height: HEIGHT, width: 0 }), bars));
  }

  #describe(at?: number): void {
    const data = this.#data;
    if (!data) return;
    if (at === undefined) return replace(this.#label, h("span", {}, dateTime(data.from_ts)), h("span", { class: "muted" }, "drag to choose a time"), h("span", {}, dateTime(data.to_ts)));
    const from = data.from_ts + at * data.bucket_ms;
    replace(this.#label, h("span", {}, `${dateTime(from)} – ${clock(Math.min(data.to_ts, from + data.bucket_ms - 1))}`), h("b", {}, `${count(data.counts[at] ?? 0)} events`));
  }

  #bucket(event: PointerEvent): number {
    const box = this.#plot.getBoundingClientRect();
    const buckets = this.#data?.counts.length ?? 1;
    return Math.max(0, Math.min(buckets - 1, Math.floor(((event.clientX - box.left) / Math.max(1, box.width)) * buckets)));
  }

  #begin(event: PointerEvent): void {
    this.#from = this.#bucket(event);
    this.#plot.setPointerCapture(event.pointerId);
    this.#mark(this.#from, this.#from);
  }

  #move(event: PointerEvent): void {
    const at = this.#bucket(event);
    this.#describe(at);
    if (this.#from !== undefined) this.#mark(this.#from, at);
  }

  #end(event: PointerEvent): void {
    const data = this.#data;
    if (this.#from === undefined || !data) return;
    const [first, last] = [this.#from, this.#bucket(event)].sort((one, other) => one - other) as [number, number];
    this.#from = undefined;
    this.onChoose(data.from_ts + first * data.bucket_ms, Math.min(data.to_ts, data.from_ts + (last + 1) * data.bucket_ms - 1));
  }

  #mark(from: number, to: number): void {
    const step = this.#plot.clientWidth / (this.#data?.counts.length ?? 1);
    const brush = this.#plot.querySelector(".brush");
    brush?.setAttribute("x", String(Math.min(from, to) * step));
    brush?.setAttribute("width", String((Math.abs(to - from) + 1) * step));
  }
}
