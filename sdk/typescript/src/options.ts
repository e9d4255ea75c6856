/** How a client behaves, with the names of all its limits. */

import { BadOptionError } from "./errors.js";
import type { TokenSource } from "./link/token.js";
import type { WebSocketConstructor } from "./transport/websocket.js";

/** How a client behaves. */
export interface ClientOptions {
  /** `ws://`, `wss://`, `http://` or `https://`; the path is `/ws` where none is given. */
  url: string | URL;
  /** A token, or a function that is asked for each connection and again before a token expires. */
  token?: TokenSource;
  /** Closes the client when aborted, also while it connects for the first time. */
  signal?: AbortSignal;
  /** Keep trying when the server cannot be reached at first; otherwise {@link connect} fails at once. */
  waitForServer?: boolean;
  /** How long to wait between attempts to connect. */
  reconnect?: ReconnectOptions;
  /**
   * Give each publish without an id one of its own (default true), so that it can be sent again after a break without
   * being stored twice. Without it such a publish ends with `unknown_outcome`.
   */
  idempotent?: boolean;
  /** Whether `publish` waits a rate limit out (default true) or rejects with `rate_limited`. */
  waitForRateLimit?: boolean;
  /** Publishes that are sent and not acknowledged (8,192). Others wait their turn. */
  maxInFlight?: number;
  /** Characters of publishes that are sent and not acknowledged (16 Mi). A larger one goes alone. */
  maxInFlightBytes?: number;
  /** Publishes that wait to be sent (100,000); beyond it `publish` rejects with `queue_full`. */
  maxQueued?: number;
  /** Characters of publishes that wait to be sent (64 Mi). */
  maxQueuedBytes?: number;
  /** How long connecting and AUTH may take together (10 s). */
  handshakeTimeoutMs?: number;
  /** After this much silence the server is asked for a sign of life; after as much again the connection is dead (20 s). */
  keepAliveMs?: number;
  /** How long {@link Client.close} waits for replies and handlers (10 s). */
  closeTimeoutMs?: number;
  /** Receives log lines. */
  logger?: Logger;
  /** Carries trace context through events, for example with OpenTelemetry's propagation API. */
  trace?: TraceHook;
  /** A WebSocket implementation; by default the global one, in Node without one the package `ws`. */
  webSocket?: WebSocketConstructor;
  /** A fetch implementation for the HTTP side; the global one by default. */
  fetch?: typeof fetch;
}

/** Pauses between attempts to connect: doubling from `baseMs` to `capMs`, with jitter over the second half. */
export interface ReconnectOptions {
  /** The first pause (50 ms). */
  baseMs?: number;
  /** The longest pause (10 s). */
  capMs?: number;
  /** Attempts in a row that may fail before the client ends; by default it never gives up. */
  maxAttempts?: number;
}

/** Takes log lines; each method may be left out. `console` is one. */
export interface Logger {
  debug?(message: string, fields?: object): void;
  info?(message: string, fields?: object): void;
  warn?(message: string, fields?: object): void;
  error?(message: string, fields?: object): void;
}

/** Carries trace context in the headers `traceparent` and `tracestate`. */
export interface TraceHook {
  /** Headers for an event that is published in the current context. */
  inject?(): Record<string, string> | undefined;
  /** Runs a handler in the context that the event's headers name. */
  extract?<R>(headers: Readonly<Record<string, string>>, run: () => R): R;
}

/** Options with all defaults filled in. */
export interface Settings {
  readonly socketUrl: string;
  readonly httpUrl: string;
  readonly token: TokenSource | undefined;
  readonly waitForServer: boolean;
  readonly idempotent: boolean;
  readonly waitForRateLimit: boolean;
  readonly reconnect: { readonly baseMs: number; readonly capMs: number; readonly maxAttempts: number };
  readonly maxInFlight: number;
  readonly maxInFlightBytes: number;
  readonly maxQueued: number;
  readonly maxQueuedBytes: number;
  readonly handshakeTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly closeTimeoutMs: number;
  readonly logger: Logger;
  readonly trace: TraceHook;
  readonly webSocket: WebSocketConstructor | undefined;
  readonly fetch: typeof fetch;
}

/** Limits and times with their defaults. */
const LIMITS = {
  maxInFlight: 8_192,
  maxInFlightBytes: 16 << 20,
  maxQueued: 100_000,
  maxQueuedBytes: 64 << 20,
  handshakeTimeoutMs: 10_000,
  keepAliveMs: 20_000,
  closeTimeoutMs: 10_000,
};

function limitsOf(options: Partial<typeof LIMITS>): typeof LIMITS {
  const limits = { ...LIMITS };
  for (const name of Object.keys(LIMITS) as (keyof typeof LIMITS)[]) limits[name] = positive(name, options[name], LIMITS[name]);
  return limits;
}

/** Checks the options and fills in defaults. */
export function settingsOf(options: ClientOptions): Settings {
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

/** A number of at least 1, or its default. */
export function positive(name: string, value: number | undefined, fallback: number): number {
  if (value === undefined) return fallback;
  if (!(value >= 1)) throw new BadOptionError("bad_option", `${name} must be at least 1, not ${value}`);
  return value;
}

function endpoints(url: string | URL): { socketUrl: string; httpUrl: string } {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new BadOptionError("bad_option", `invalid url ${JSON.stringify(String(url))}`);
  }
  const scheme = /^(?:http|ws)(s?):$/.exec(parsed.protocol);
  if (!scheme) throw new BadOptionError("bad_option", `invalid url scheme ${parsed.protocol}`);
  const rest = `${scheme[1]}://${parsed.host}`;
  const path = parsed.pathname.replace(/\/(?:ws\/?)?$/, "");
  return { socketUrl: `ws${rest}${path}/ws`, httpUrl: `http${rest}${path}` };
}
