const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
export function count(value) {
    return whole.format(value);
}
export function short(value) {
    return value < 10_000 ? count(value) : compact.format(value);
}
export function rate(perSecond) {
    if (perSecond === 0)
        return "0/s";
    if (perSecond < 0.1)
        return "<0.1/s";
    return perSecond < 100 ? `${tenths.format(perSecond)}/s` : `${short(Math.round(perSecond))}/s`;
}
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
export function bytes(value) {
    let unit = 0;
    while (value >= 1024 && unit < UNITS.length - 1) {
        value /= 1024;
        unit += 1;
    }
    return `${unit === 0 || value >= 100 ? whole.format(value) : tenths.format(value)} ${UNITS[unit]}`;
}
export function duration(ms) {
    if (ms < 1000)
        return `${Math.max(0, Math.round(ms))} ms`;
    const seconds = Math.floor(ms / 1000);
    const parts = [[Math.floor(seconds / 86_400), "d"], [Math.floor(seconds / 3600) % 24, "h"], [Math.floor(seconds / 60) % 60, "min"], [seconds % 60, "s"]];
    const first = parts.findIndex(([value]) => value > 0);
    return parts.slice(first, first + 2).filter(([value]) => value > 0).map(([value, unit]) => `${value} ${unit}`).join(" ");
}
export function micros(value) {
    if (value === 0)
        return "–";
    if (value < 1000)
        return `${whole.format(value)} µs`;
    return value < 100_000 ? `${tenths.format(value / 1000)} ms` : `${whole.format(value / 1000)} ms`;
}
let skewMs = 0;
export function setServerNow(nowMs) {
    skewMs = nowMs - Date.now();
}
export function clockSkewMs() {
    return skewMs;
}
export function serverNow() {
    return Date.now() + skewMs;
}
export function ago(ts) {
    const ms = serverNow() - ts;
    if (ms < -2000)
        return `in ${duration(-ms)}`;
    return ms < 1500 ? "now" : `${duration(ms < 60_000 ? ms : Math.floor(ms / 60_000) * 60_000)} ago`;
}
const pad = (value, width = 2) => String(value).padStart(width, "0");
export function clock(ts) {
    const date = new Date(ts);
    return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}.${pad(date.getMilliseconds(), 3)}`;
}
export function dateTime(ts) {
    const date = new Date(ts);
    return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${clock(ts)}`;
}
export function localInput(ts) {
    return dateTime(ts).replace(" ", "T");
}
export function preview(value, length = 200) {
    const text = JSON.stringify(value) ?? "";
    return text.length > length ? `${text.slice(0, length)}…` : text;
}
export function plural(value, one, many = `${one}s`) {
    return `${count(value)} ${value === 1 ? one : many}`;
}
