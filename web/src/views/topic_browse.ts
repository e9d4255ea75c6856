/** Stored events: by time, with a histogram to choose from, by position, id or key. */

import { ApiError, get } from "../api.js";
import { append, h, replace } from "../dom.js";
import * as format from "../format.js";
import type { Causes, EventPage, EventRecord, HistogramReply, TopicInfo } from "../model.js";
import { eventRow } from "../parts/event_view.js";
import { button, field, input, select } from "../parts/fields.js";
import { TimeHistogram } from "../parts/histogram.js";
import { command, emptyNotice, errorNotice, loading } from "../parts/notice.js";
import { remember, type Route } from "../router.js";
import { segment } from "../api.js";
import type { Tab } from "./topic.js";

const PAGE_EVENTS = 50;
const BUCKETS = 120;

type Place = { by: "newest" } | { by: "seq"; seq: number } | { by: "ts"; ts: number; toTs?: number } | { by: "id"; id: string } | { by: "key"; key: string };

export function browse(topic: string, route: Route): Tab {
  return new Browser(topic, route);
}

class Browser implements Tab {
  readonly element: HTMLElement;
  readonly #events = h("div", { class: "events" });
  readonly #histogram = new TimeHistogram((fromTs, toTs) => void this.#go({ by: "ts", ts: fromTs, toTs }));
  readonly #by: HTMLSelectElement;
  readonly #value: HTMLInputElement;
  readonly #pager = h("div", { class: "pager" });
  #isShown = false;
  #tail = 0;

  constructor(readonly topic: string, route: Route) {
    const query = route.query;
    const by = query.has("id") ? "id" : query.has("key") ? "key" : query.has("seq") ? "seq" : query.has("ts") ? "ts" : "newest";
    this.#by = select([["newest", "newest first"], ["ts", "from a time"], ["seq", "from a position"], ["id", "one id"], ["key", "one key"]], by);
    this.#value = input({ value: query.get(by) ?? "" });
    this.#by.addEventListener("change", () => this.#prepare());
    const form = h("form", { class: "toolbar browse-form" }, field("Show", this.#by), field("Value", this.#value), h("button", { type: "submit", class: "button button-primary" }, "Show"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const place = this.#asked();
      if (place) void this.#go(place);
    });
    this.element = h("div", {}, this.#histogram.element, form, this.#events, this.#pager);
    this.#prepare(query.get(by) ?? "");
  }

  async refresh(): Promise<void> {
    const [info, histogram] = await Promise.all([
      get<TopicInfo>(`/topics/${segment(this.topic)}`),
      get<HistogramReply>("/histogram", { topic: this.topic, buckets: BUCKETS }),
    ]);
    const hasMore = info.tail_seq > this.#tail;
    this.#tail = info.tail_seq;
    this.#histogram.update(histogram);
    if (!this.#isShown) {
      this.#isShown = true;
      await this.#go(this.#asked() ?? { by: "newest" });
    } else if (hasMore && this.#by.value === "newest") {
      this.#offerNewer();
    }
  }

  /** New events do not move what one is reading; a button brings them. */
  #offerNewer(): void {
    const first = Number(this.#events.querySelector("[data-seq]")?.getAttribute("data-seq") ?? 0);
    const newer = this.#tail - first;
    if (first === 0) return void this.#go({ by: "newest" });
    if (newer <= 0) return;
    let offer = this.#events.querySelector<HTMLButtonElement>(".newer");
    if (!offer) {
      offer = button("", () => void this.#go({ by: "newest" }), { class: "button newer" });
      this.#events.prepend(offer);
    }
    offer.textContent = `Show ${format.plural(newer, "newer event")}`;
  }

  #prepare(value = ""): void {
    const by = this.#by.value;
    const row = this.#value.parentElement;
    if (row) row.hidden = by === "newest";
    this.#value.type = by === "ts" ? "datetime-local" : by === "seq" ? "number" : "text";
    if (by === "ts") this.#value.step = "0.001";
    this.#value.value = by === "ts" ? format.localInput(Number(value) || format.serverNow() - 3_600_000) : value;
  }

  #asked(): Place | undefined {
    const { value } = this.#value;
    switch (this.#by.value) {
      case "seq": return { by: "seq", seq: Math.max(1, Number(value) || 1) };
      case "ts": return { by: "ts", ts: new Date(value).getTime() || 0 };
      case "id": return value ? { by: "id", id: value.trim() } : undefined;
      case "key": return { by: "key", key: value };
      default: return { by: "newest" };
    }
  }

  async #go(place: Place): Promise<void> {
    const named = { id: undefined, key: undefined, seq: undefined, ts: undefined };
    remember(place.by === "newest" ? named : { ...named, [place.by]: (place as unknown as Record<string, string | number>)[place.by] });
    this.#by.value = place.by;
    if (place.by !== "newest") this.#prepare(String((place as unknown as Record<string, string | number>)[place.by]));
    else this.#prepare();
    replace(this.#pager);
    if (this.#events.childElementCount === 0) replace(this.#events, loading());
    try {
      await this.#show(place);
    } catch (error) {
      const isUnknown = error instanceof ApiError && error.code === "unknown_id";
      replace(this.#events, isUnknown ? emptyNotice("This topic holds no event with that id.") : errorNotice(error));
    }
  }

  async #show(place: Place): Promise<void> {
    switch (place.by) {
      case "newest": return this.#showBackwards(this.#tail);
      case "seq": return this.#showForwards({ from: "seq", seq: place.seq });
      case "ts": return this.#showForwards({ from: "ts", ts: place.ts }, place.toTs);
      case "id": {
        const around = await get<Causes>("/causes", { topic: this.topic, id: place.id });
        const { event } = around;
        replace(this.#events, eventRow(event, around));
        return replace(this.#pager, button("Events around it", () => void this.#go({ by: "seq", seq: Math.max(1, event.seq - 10) })));
      }
      case "key": return this.#showKey(place.key);
    }
  }

  async #showForwards(from: Record<string, string | number>, toTs = Infinity): Promise<void> {
    const page = await get<EventPage>("/replay", { topic: this.topic, ...from, limit: PAGE_EVENTS });
    const events = page.events.filter((event) => event.ts <= toTs);
    this.#list(events, "Nothing is stored from there on.");
    const next = page.next;
    const isMore = next !== null && events.length === page.events.length;
    replace(this.#pager, isMore && button("Next page", () => void this.#go({ by: "seq", seq: next }).then(() => scrollTo(0, 0))));
  }

  /** A page that ends at a position, newest first. Where compaction left gaps it has fewer events. */
  async #showBackwards(last: number): Promise<void> {
    const first = Math.max(1, last - PAGE_EVENTS + 1);
    const page = last === 0 ? { events: [] } : await get<EventPage>("/replay", { topic: this.topic, from: "seq", seq: first, limit: PAGE_EVENTS });
    const events = page.events.filter((event) => event.seq <= last).reverse();
    this.#list(events, "Nothing is stored here.");
    const older = (events.at(-1)?.seq ?? first) - 1;
    replace(this.#pager, older > 0 && button("Older", () => void this.#showBackwards(older).then(() => scrollTo(0, 0))), last < this.#tail && button("Newest", () => void this.#go({ by: "newest" })));
  }

  async #showKey(key: string): Promise<void> {
    const page = await get<{ events: EventRecord[] }>("/latest-by-key", { topic: this.topic, key });
    this.#list(page.events, `The topic has no event with the key “${key}”, or it was deleted.`);
    replace(this.#pager, h("a", { class: "button", href: `#/topics/${segment(this.topic)}?tab=keys&key=${encodeURIComponent(key)}` }, "History of this key"));
  }

  #list(events: EventRecord[], nothing: string): void {
    if (events.length > 0) return replace(this.#events, events.map((event) => eventRow(event)));
    replace(this.#events, emptyNotice(nothing));
    if (this.#tail === 0) append(this.#events, command(`curl -d '{"text":"hi"}' '${location.origin}/publish/${this.topic}'`));
  }
}
