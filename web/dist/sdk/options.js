import { BadOptionError } from "./errors.js";
const LIMITS = {
    maxInFlight: 8_192,
    maxInFlightBytes: 16 << 20,
    maxQueued: 100_000,
    maxQueuedBytes: 64 << 20,
    handshakeTimeoutMs: 10_000,
    keepAliveMs: 20_000,
    closeTimeoutMs: 10_000,
};
function limitsOf(options) {
    const limits = { ...LIMITS };
    for (const name of Object.keys(LIMITS))
        limits[name] = positive(name, options[name], LIMITS[name]);
    return limits;
}
export function settingsOf(options) {
    const { socketUrl, httpUrl } = endpoints(options.url);
    const reconnect = options.reconnect ?? {};
    return {
        socketUrl,
        httpUrl,
        token: options.token,
        waitForServer: options.waitForServer ?? false,
        idempotent: options.idempotent ?? true,
        waitForRateLimit: options.waitForRateLimit ?? true,
        reconnect: {
            baseMs: positive("reconnect.baseMs", reconnect.baseMs, 50),
            capMs: positive("reconnect.capMs", reconnect.capMs, 10_000),
            maxAttempts: reconnect.maxAttempts ?? Infinity,
        },
        ...limitsOf(options),
        logger: options.logger ?? {},
        trace: options.trace ?? {},
        webSocket: options.webSocket,
        fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    };
}
export function positive(name, value, fallback) {
    if (value === undefined)
        return fallback;
    if (!(value >= 1))
        throw new BadOptionError("bad_option", `${name} must be at least 1, not ${value}`);
    return value;
}
function endpoints(url) {
    let parsed;
    try {
        parsed = new URL(url);
    }
    catch {
        throw new BadOptionError("bad_option", `invalid url ${JSON.stringify(String(url))}`);
    }
    const scheme = /^(?:http|ws)(s?):$/.exec(parsed.protocol);
    if (!scheme)
        throw new BadOptionError("bad_option", `invalid url scheme ${parsed.protocol}`);
    const rest = `${scheme[1]}://${parsed.host}`;
    const path = parsed.pathname.replace(/\/(?:ws\/?)?$/, "");
    return { socketUrl: `ws${rest}${path}/ws`, httpUrl: `http${rest}${path}` };
}
