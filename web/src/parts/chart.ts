/** Lines over time, drawn as SVG, with the values under the pointer; and small ones for table rows. */

import { h, replace, setText, svg } from "../dom.js";
import { clock } from "../format.js";

export interface Series {
  name: string;
  /** One of the colours of the style sheet: `series-1` … `series-5`. */
  color: string;
  values: number[];
}

const HEIGHT = 150;
const TOP = 18;
const BOTTOM = 18;
/** Slots that the server keeps of a topic or a group. */
const SPARK_POINTS = 90;

/** A chart that is drawn again with every `update`. */
export class LineChart {
  readonly element: HTMLElement;
  readonly #plot: HTMLElement;
  readonly #legend: HTMLElement;
  readonly #tip: HTMLElement;
  #series: Series[] = [];
  #ts: number[] = [];

  constructor(readonly title: string, readonly format: (value: number) => string) {
    this.#plot = h("div", { class: "chart-plot", role: "img" });
    this.#legend = h("ul", { class: "legend" });
    this.#tip = h("div", { class: "chart-tip", hidden: true });
    this.element = h("figure", { class: "card chart" },
      h("figcaption", { class: "chart-head" }, h("h2", {}, title), this.#legend),
      h("div", { class: "chart-frame" }, this.#plot, this.#tip));
    this.#plot.addEventListener("pointermove", (event) => this.#point(event));
    this.#plot.addEventListener("pointerleave", () => this.#leave());
    new ResizeObserver(() => this.#draw()).observe(this.#plot);
  }

  update(ts: number[], series: Series[]): void {
    this.#ts = ts;
    this.#series = series;
    this.#drawLegend();
    this.#draw();
  }

  #drawLegend(): void {
    if (this.#legend.children.length !== this.#series.length) {
      replace(this.#legend, this.#series.map(({ name, color }) =>
        h("li", {}, h("span", { class: `swatch ${color}`, "aria-hidden": "true" }), `${name} `, h("b", {}))));
    }
    const latest = this.#series.map(({ values }) => this.format(values.at(-1) ?? 0));
    latest.forEach((text, at) => {
      const value = this.#legend.children[at]?.querySelector("b");
      if (value) setText(value, text);
    });
    const words = this.#series.map(({ name }, at) => `${name} ${latest[at]}`).join(", ");
    this.#plot.setAttribute("aria-label", this.#ts.length > 0 ? `${this.title} over the last minutes; now ${words}` : `${this.title}: nothing recorded yet`);
  }

  #draw(): void {
    const width = this.#plot.clientWidth;
    if (width === 0) return;
    const top = niceCeiling(Math.max(0, ...this.#series.flatMap(({ values }) => values)));
    const first = this.#ts[0] ?? 0;
    const last = this.#ts.at(-1) ?? first;
    const x = (ts: number): number => (last === first ? width : ((ts - first) / (last - first)) * width);
    const y = (value: number): number => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
    const lines = [0, 0.5, 1].map((part) => svg("line", { class: "grid", x1: 0, x2: width, y1: y(top * part), y2: y(top * part) }));
    const labels = [0.5, 1].map((part) => svg("text", { class: "axis", x: 0, y: y(top * part) - 3 }, this.format(top * part)));
    const times = this.#ts.length > 1
      ? [svg("text", { class: "axis", x: 0, y: HEIGHT - 4 }, clock(first).slice(0, 5)), svg("text", { class: "axis", x: width, y: HEIGHT - 4, "text-anchor": "end" }, clock(last).slice(0, 5))]
      : [];
    const paths = this.#series.map(({ values, color }) => svg("path", { class: `line ${color}`, d: path(this.#ts, values, x, y) }));
    const quiet = this.#ts.length < 2 ? [svg("text", { class: "axis", x: width / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "The first samples come in a few seconds.")] : [];
    replace(this.#plot, svg("svg", { width, height: HEIGHT, "aria-hidden": "true" }, lines, labels, times, paths, quiet, svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM })));
  }

  #point(event: PointerEvent): void {
    const box = this.#plot.getBoundingClientRect();
    if (this.#ts.length < 2 || box.width === 0) return;
    const first = this.#ts[0] ?? 0;
    const last = this.#ts.at(-1) ?? first;
    const wanted = first + ((event.clientX - box.left) / box.width) * (last - first);
    const at = nearest(this.#ts, wanted);
    const x = (((this.#ts[at] ?? first) - first) / Math.max(1, last - first)) * box.width;
    const cursor = this.#plot.querySelector(".cursor");
    cursor?.setAttribute("x1", String(x));
    cursor?.setAttribute("x2", String(x));
    cursor?.classList.add("is-shown");
    this.#tip.hidden = false;
    this.#tip.style.left = `${Math.min(x + 12, box.width - 150)}px`;
    replace(this.#tip, h("b", {}, clock(this.#ts[at] ?? 0).slice(0, 8)),
      this.#series.map(({ name, color, values }) => h("div", {}, h("span", { class: `swatch ${color}` }), `${name} `, h("b", {}, this.format(values[at] ?? 0)))));
  }

  #leave(): void {
    this.#tip.hidden = true;
    this.#plot.querySelector(".cursor")?.classList.remove("is-shown");
  }
}

/** A line without axes, for a row. */
export function sparkline(values: readonly number[], label: string, isFromZero = true): SVGElement {
  const [width, height] = [96, 24];
  const top = Math.max(1, ...values);
  // Before the first value there was nothing, or it is not known what there was.
  const missing = isFromZero && values.length > 0 ? Math.max(0, SPARK_POINTS - values.length) : 0;
  const all = values.length > 0 ? [...Array<number>(missing).fill(0), ...(values.length === 1 && !isFromZero ? values : []), ...values] : [];
  const at = all.map((value, index): string => `${round((index / (all.length - 1)) * width)} ${round(height - 2 - (value / top) * (height - 4))}`);
  const line = at.length > 0 ? `M${at.join("L")}` : "";
  const area = at.length > 0 ? `${line}L${width} ${height}L0 ${height}Z` : "";
  return svg("svg", { class: "spark", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    svg("path", { class: "spark-area", d: area }), svg("path", { class: "spark-line", d: line }));
}

function path(ts: readonly number[], values: readonly number[], x: (ts: number) => number, y: (value: number) => number): string {
  return values.map((value, at) => `${at === 0 ? "M" : "L"}${round(x(ts[at] ?? 0))} ${round(y(value))}`).join("");
}

/** A round number at or above this one. */
function niceCeiling(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 2.5, 5, 10].find((step) => step * power >= value) ?? 10;
  return step * power;
}

function nearest(sorted: readonly number[], wanted: number): number {
  let best = 0;
  sorted.forEach((value, at) => {
    if (Math.abs(value - wanted) < Math.abs((sorted[best] ?? 0) - wanted)) best = at;
  });
  return best;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
