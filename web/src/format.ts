/** Numbers, sizes, times and JSON as people read them. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** 1234567 → 1,234,567. */
export function count(value: number): string {
  return whole.format(value);
}

/** 1234567 → 1.2M. */
export function short(value: number): string {
  return value < 10_000 ? count(value) : compact.format(value);
}

/** Events a second. */
export function rate(perSecond: number): string {
  if (perSecond === 0) return "0/s";
  if (perSecond < 0.1) return "<0.1/s";
  return perSecond < 100 ? `${tenths.format(perSecond)}/s` : `${short(Math.round(perSecond))}/s`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(value: number): string {
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? whole.format(value) : tenths.format(value)} ${UNITS[unit]}`;
}

/** Milliseconds as the two largest parts: 2 h 5 min. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.floor(ms / 1000);
  const parts: [number, string][] = [[Math.floor(seconds / 86_400), "d"], [Math.floor(seconds / 3600) % 24, "h"], [Math.floor(seconds / 60) % 60, "min"], [seconds % 60, "s"]];
  const first = parts.findIndex(([value]) => value > 0);
  return parts.slice(first, first + 2).filter(([value]) => value > 0).map(([value, unit]) => `${value} ${unit}`).join(" ");
}

export function micros(value: number): string {
  if (value === 0) return "–";
  if (value < 1000) return `${whole.format(value)} µs`;
  return value < 100_000 ? `${tenths.format(value / 1000)} ms` : `${whole.format(value / 1000)} ms`;
}

/** How far the server's clock is ahead of this one, in milliseconds. */
let skewMs = 0;

export function setServerNow(nowMs: number): void {
  skewMs = nowMs - Date.now();
}

export function clockSkewMs(): number {
  return skewMs;
}

/** The server's clock. */
export function serverNow(): number {
  return Date.now() + skewMs;
}

/** How long ago, by the server's clock. */
export function ago(ts: number): string {
  const ms = serverNow() - ts;
  if (ms < -2000) return `in ${duration(-ms)}`;
  return ms < 1500 ? "now" : `${duration(ms < 60_000 ? ms : Math.floor(ms / 60_000) * 60_000)} ago`;
}

const pad = (value: number, width = 2): string => String(value).padStart(width, "0");

/** Local time of the day with milliseconds. */
export function clock(ts: number): string {
  const date = new Date(ts);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}.${pad(date.getMilliseconds(), 3)}`;
}

/** Local date and time. */
export function dateTime(ts: number): string {
  const date = new Date(ts);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${clock(ts)}`;
}

/** The value of a `datetime-local` input. */
export function localInput(ts: number): string {
  return dateTime(ts).replace(" ", "T");
}

/** JSON on one line, cut to a length. */
export function preview(value: unknown, length = 200): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

/** One or many. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
