/** One connection from AUTH to its end: frames out, frames in, signs of life, fresh tokens. */

import { closedError, type PrombusError, ProtocolError, TimeoutError, UnreachableError } from "../errors.js";
import { type ErrFrame, errorOf, type EventFrame, frame, type OkFrame, type PartitionsFrame, type ServerFrame } from "../frames.js";
import type { Settings } from "../options.js";
import type { Outbox } from "../publish/outbox.js";
import { background, backoffMs } from "../timers.js";
import { Socket, type WebSocketConstructor } from "../transport/websocket.js";
import { askToken, refreshDelayMs, type Token } from "./token.js";

/** Who waits for the reply to a frame. */
export interface Request {
  ok(frame: OkFrame): void;
  err(error: PrombusError): void;
  /** The connection broke before the reply. */
  lost(): void;
}

/** What a connection serves. */
export interface SessionHost {
  readonly settings: Settings;
  readonly outbox: Outbox;
  /** AUTH succeeded. */
  onOpen(): void;
  onEvent(event: EventFrame, nowMs: number): void;
  onPartitions(frame: PartitionsFrame): void;
  /** All frames of a message are taken in. */
  onMessageEnd(): void;
  onToken(token: Token): void;
  /** The connection is over. Called once. */
  onEnd(why: PrombusError): void;
  /** There is something to send. */
  touch(): void;
}

/** From this many unanswered frames on, acknowledgements wait. */
export const MAX_OPEN_REQUESTS = 4_096;
/** The prefix of the number in the `corr` of everything that is not a PUBLISH. */
const REQUEST_PREFIX = "r";
/** Codes of AUTH that another token may cure. */
const TOKEN_CODES = new Set(["bad_token", "unauthorized", "token_expired", "forbidden"]);

export function isAboutToken(error: PrombusError): boolean {
  return TOKEN_CODES.has(error.code);
}

export class Session {
  readonly #socket: Socket;
  readonly #requests = new Map<string, Request>();
  #controls: string[] = [];
  #nextRequest = 0;
  #isOpen = false;
  #isOver = false;
  #hasReceived = true;
  #isProbing = false;
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #refreshFailures = 0;
  /** Whether anything but the reply to AUTH came: then connecting again at once is worth it. */
  wasUseful = false;

  readonly #host: SessionHost;
  #token: Token | undefined;

  constructor(host: SessionHost, implementation: WebSocketConstructor, token: Token | undefined) {
    this.#host = host;
    this.#token = token;
    const { settings } = host;
    const onTimeout = (): void => this.fail(new TimeoutError("timeout", `${settings.socketUrl} did not reply within ${settings.handshakeTimeoutMs} ms`));
    const handshake = this.#after(settings.handshakeTimeoutMs, onTimeout);
    try {
      this.#socket = new Socket(implementation, settings.socketUrl, {
        onOpen: () => this.#authenticate(() => this.#begin(handshake)),
        onText: (text) => this.#receive(text),
        onEnd: (reason) => this.#finish(new UnreachableError("unreachable", `${settings.socketUrl}: ${reason}`)),
      });
    } catch (error) {
      // A browser throws here for a page that may not open this socket.
      clearTimeout(handshake);
      throw error;
    }
  }

  get openRequests(): number {
    return this.#requests.size;
  }

  /** Sends a frame with the next flush. */
  request(op: string, fields: object, request: Request): void {
    this.#nextRequest += 1;
    const corr = REQUEST_PREFIX + this.#nextRequest;
    this.#requests.set(corr, request);
    this.#controls.push(frame(op, { ...fields, corr }));
    this.#host.touch();
  }

  /** Sends what was gathered. */
  flush(): void {
    if (this.#controls.length > 0) {
      const controls = this.#controls;
      this.#controls = [];
      for (const message of messages(controls)) this.#socket.send(message);
    }
    if (!this.#isOpen) return;
    const nowMs = Date.now();
    for (let message = this.#host.outbox.nextMessage(nowMs); message; message = this.#host.outbox.nextMessage(nowMs)) {
      this.#socket.send(message);
    }
    const resumesAtMs = this.#host.outbox.resumesAtMs;
    if (resumesAtMs > nowMs) this.#after(resumesAtMs - nowMs + 1, () => this.#host.touch());
  }

  /** Ends the connection because of an error. */
  fail(error: PrombusError): void {
    this.#finish(error);
    this.#socket.end(error.message);
  }

  close(): void {
    this.fail(closedError());
  }

  #begin(handshake: ReturnType<typeof setTimeout>): void {
    clearTimeout(handshake);
    this.#isOpen = true;
    this.#keepAlive();
    this.#scheduleRefresh();
    this.#host.onOpen();
    this.#host.touch();
  }

  /** Sends AUTH, which also asks for arrays of frames. */
  #authenticate(onOk: () => void): void {
    const fields = { token: this.#token?.token, batch: true };
    const err = (error: PrombusError): void => this.fail(error);
    this.request("AUTH", fields, { ok: onOk, err, lost: () => undefined });
    this.flush();
  }

  #receive(text: string): void {
    this.#hasReceived = true;
    let frames: ServerFrame | ServerFrame[];
    try {
      frames = JSON.parse(text) as ServerFrame | ServerFrame[];
    } catch (cause) {
      return this.fail(new ProtocolError("protocol_error", "invalid JSON", { cause }));
    }
    const nowMs = Date.now();
    if (Array.isArray(frames)) for (const each of frames) this.#take(each, nowMs);
    else this.#take(frames, nowMs);
    this.#host.onMessageEnd();
  }

  #take(frame: ServerFrame, nowMs: number): void {
    if (this.#isOver) return;
    if (frame.op === "EVENT") {
      this.wasUseful = true;
      this.#host.onEvent(frame, nowMs);
    } else if (frame.op === "OK") {
      this.#ok(frame);
    } else if (frame.op === "ERR") {
      this.#err(frame, nowMs);
    } else if (frame.op === "ASSIGN" || frame.op === "REVOKE") {
      this.#host.onPartitions(frame);
    }
  }

  #ok(frame: OkFrame): void {
    const { corr } = frame;
    if (corr === undefined) return;
    const request = this.#takeRequest(corr);
    if (request) return request.ok(frame);
    if (corr.startsWith(REQUEST_PREFIX)) return;
    this.wasUseful = true;
    const { id, due } = frame;
    const seq = frame.seq ?? (frame.scheduled ? 0 : undefined);
    const isStored = id !== undefined && seq !== undefined && this.#host.outbox.stored(corr, { id, seq, ts: frame.ts ?? due, due, duplicate: frame.duplicate });
    if (!isStored) this.fail(new ProtocolError("protocol_error", "replies to PUBLISH are out of order"));
  }

  #err(frame: ErrFrame, nowMs: number): void {
    const error = errorOf(frame);
    const { corr } = frame;
    if (corr === undefined) return this.#errOfConnection(error);
    const request = this.#takeRequest(corr);
    if (request) return request.err(error);
    if (corr.startsWith(REQUEST_PREFIX)) return;
    if (!this.#host.outbox.rejected(corr, error, nowMs)) {
      this.fail(new ProtocolError("protocol_error", "replies to PUBLISH are out of order"));
    }
  }

  /** An error without `corr` is about the connection, or says that a subscription ended; a new one finds out. */
  #errOfConnection(error: PrombusError): void {
    if (error.code === "rate_limited") this.#host.settings.logger.warn?.("prombus: throttled", { error: error.message });
    else if (error.code === "forbidden") this.fail(new UnreachableError("unreachable", error.message, { cause: error }));
    else this.fail(error);
  }

  #takeRequest(corr: string): Request | undefined {
    const request = this.#requests.get(corr);
    if (request) this.#requests.delete(corr);
    return request;
  }

  /** A connection that is silent is asked for a sign of life: AUTH with the same token changes nothing. */
  #keepAlive(): void {
    const { keepAliveMs } = this.#host.settings;
    this.#after(keepAliveMs, () => {
      if (this.#hasReceived) {
        this.#isProbing = false;
      } else if (this.#isProbing) {
        return this.fail(new UnreachableError("unreachable", `no reply within ${keepAliveMs} ms`));
      } else {
        this.#isProbing = true;
        this.#authenticate(() => undefined);
      }
      this.#hasReceived = false;
      this.#keepAlive();
    });
  }

  /** Replaces the token on this connection before it expires, so that leases stay. */
  #scheduleRefresh(): void {
    if (typeof this.#host.settings.token !== "function") return;
    const delayMs = refreshDelayMs(this.#token, Date.now());
    if (delayMs !== undefined) this.#after(delayMs, () => void this.#refresh());
  }

  async #refresh(): Promise<void> {
    try {
      const token = await askToken(this.#host.settings.token);
      if (this.#isOver || !token) return;
      this.#refreshFailures = 0;
      this.#token = token;
      this.#host.onToken(token);
      this.#authenticate(() => this.#scheduleRefresh());
    } catch (error) {
      this.#refreshFailures += 1;
      this.#host.settings.logger.warn?.("prombus: no fresh token", { error });
      const { baseMs, capMs } = this.#host.settings.reconnect;
      if (!this.#isOver) this.#after(backoffMs(baseMs, capMs, this.#refreshFailures + 2, Math.random()), () => void this.#refresh());
    }
  }

  #finish(why: PrombusError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    const requests = [...this.#requests.values()];
    this.#requests.clear();
    for (const request of requests) request.lost();
    this.#host.onEnd(why);
  }

  #after(ms: number, call: () => void): ReturnType<typeof setTimeout> {
    const timer = background(() => {
      this.#timers.delete(timer);
      call();
    }, ms);
    this.#timers.add(timer);
    return timer;
  }
}

/** A message with control frames is closed when it has this many characters. */
const CONTROL_CHARS = 64 << 10;

/** Frames in few messages. */
function* messages(frames: string[]): Generator<string> {
  let message = "";
  for (const each of frames) {
    message += (message ? "," : "[") + each;
    if (message.length >= CONTROL_CHARS) {
      yield message + "]";
      message = "";
    }
  }
  if (message) yield frames.length === 1 ? message.slice(1) : message + "]";
}
