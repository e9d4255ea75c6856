/** What outlives a connection: it connects, connects again, and holds what has to be served on the next one. */

import { closedError, errorFor, GaveUpError, messageOf, NoTokenError, PrombusError } from "../errors.js";
import type { EventFrame, PartitionsFrame } from "../frames.js";
import { Listeners } from "../listeners.js";
import type { Settings } from "../options.js";
import { Outbox } from "../publish/outbox.js";
import { backoffMs, sleep } from "../timers.js";
import { defaultWebSocket } from "#websocket";
import { isAboutToken, Session, type SessionHost } from "./session.js";
import { askToken, type Token } from "./token.js";

/** How far the client's life has come. */
export type ConnectionState = "connecting" | "connected" | "reconnecting" | "closed";

/** The events of a client. */
export interface ClientEvents {
  /** The state changed. */
  state: ConnectionState;
  /** A connection is up, the first one or a later one. */
  connected: { attempt: number };
  /** A connection broke; the client connects again. */
  disconnected: { error: PrombusError };
  /** The client ended: it was closed, or there is no use in another attempt. */
  closed: { error: PrombusError };
}

/** A subscription as the connection sees it. */
export interface Served {
  /** Whether events of this topic, or pattern, and group are its own. */
  isNamed(topic: string, group: string): boolean;
  hasGroup(group: string): boolean;
  deliver(event: EventFrame, nowMs: number): void;
  /** Partitions come or go. */
  onPartitions(frame: PartitionsFrame): void;
  /** All events of a message were delivered. */
  afterDelivery(): void;
  /** Writes what it has to say, SUBSCRIBE first on a new connection. */
  serve(session: Session): void;
  /** The connection is gone, and the leases with it. */
  onDisconnect(): void;
  /** The client ended. */
  onClientEnd(error: PrombusError): void;
}

/** How often a flush looks again whether more is coming before it sends. */
const MAX_GATHER_ROUNDS = 6;

export class Link implements SessionHost {
  readonly outbox: Outbox;
  readonly events: Listeners<ClientEvents>;
  state: ConnectionState = "connecting";
  readonly #served = new Set<Served>();
  readonly #touched = new Set<Served>();
  readonly #delivered = new Set<Served>();
  #route: { topic: string; group: string; to: Served } | undefined;
  #session: Session | undefined;
  #isSessionOpen = false;
  #isFlushPlanned = false;
  readonly #closing = new AbortController();
  #rejectedToken: string | undefined;
  #sessionEnded: (why: PrombusError) => void = () => undefined;
  #firstConnected: (() => void) | undefined;
  #failures = 0;
  #latestToken: Token | undefined;
  #error: PrombusError | undefined;

  constructor(readonly settings: Settings) {
    this.outbox = new Outbox(settings);
    this.events = new Listeners((error) => settings.logger.error?.("prombus: a listener threw", { error }));
  }

  /** Connects; resolves with the first connection, rejects when the client ends before. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#firstConnected = resolve;
      this.over = this.#live().then((error) => {
        this.#end(error);
        reject(error);
      });
    });
  }

  /** Resolves when the client has ended. */
  over: Promise<void> = Promise.resolve();

  /** Why the client ended, where it has. */
  get ended(): PrombusError | undefined {
    return this.#error;
  }

  add(served: Served): void {
    this.#served.add(served);
    this.#route = undefined;
    this.touch(served);
  }

  remove(served: Served): void {
    this.#served.delete(served);
    this.#touched.delete(served);
    this.#route = undefined;
  }

  /** Plans a flush. Frames of calls that are made together share few messages. */
  touch(served?: Served): void {
    if (served) this.#touched.add(served);
    if (this.#isFlushPlanned || !this.#session) return;
    this.#isFlushPlanned = true;
    this.#gather(0, -1);
  }

  /** A token for an HTTP request. */
  async currentToken(): Promise<string | undefined> {
    const latestToken = this.#latestToken;
    const isStale = !latestToken || (latestToken.expiresAt ?? Infinity) <= Date.now();
    if (isStale && this.settings.token !== undefined) this.#latestToken = await askToken(this.settings.token);
    return this.#latestToken?.token;
  }

  /** Ends the client. */
  close(): void {
    this.#closing.abort();
    this.#session?.close();
  }

  onOpen(): void {
    this.#isSessionOpen = true;
    this.#setState("connected");
    this.events.emit("connected", { attempt: this.#failures + 1 });
    this.#rejectedToken = undefined;
    this.#firstConnected?.();
    this.#firstConnected = undefined;
    for (const served of this.#served) this.#touched.add(served);
  }

  onEvent(event: EventFrame, nowMs: number): void {
    const to = this.#find(event.topic, event.group);
    // One that was unsubscribed a moment ago gets its last events; their leases are free already.
    if (!to) return;
    this.#delivered.add(to);
    to.deliver(event, nowMs);
  }

  onPartitions(frame: PartitionsFrame): void {
    this.#find(frame.topic, frame.group)?.onPartitions(frame);
  }

  onMessageEnd(): void {
    for (const served of this.#delivered) served.afterDelivery();
    this.#delivered.clear();
    this.touch();
  }

  onToken(token: Token): void {
    this.#latestToken = token;
  }

  onEnd(why: PrombusError): void {
    this.#session = undefined;
    this.#isSessionOpen = false;
    this.outbox.rewind();
    for (const served of this.#served) served.onDisconnect();
    this.#sessionEnded(why);
  }

  /** One connection after the other, until there is a reason to end. */
  async #live(): Promise<PrombusError> {
    for (;;) {
      const why = await this.#connectOnce();
      if (this.#closing.signal.aborted) return closedError();
      if (this.#isFatal(why)) return why;
      this.#failures += 1;
      const { baseMs, capMs, maxAttempts } = this.settings.reconnect;
      if (this.#failures > maxAttempts) {
        return new GaveUpError("gave_up", `gave up after ${this.#failures} attempts; the last one: ${why.message}`, { cause: why });
      }
      this.#setState(this.#firstConnected ? "connecting" : "reconnecting");
      this.events.emit("disconnected", { error: why });
      this.settings.logger.warn?.("prombus: disconnected", { error: why.message, failures: this.#failures });
      const pauseMs = Math.max(backoffMs(baseMs, capMs, this.#failures, Math.random()), why.retryAfterMs ?? 0);
      await sleep(pauseMs, this.#closing.signal).catch(() => undefined);
      if (this.#closing.signal.aborted) return closedError();
    }
  }

  /** Serves one connection to its end and says why it ended. */
  async #connectOnce(): Promise<PrombusError> {
    try {
      const token = await askToken(this.settings.token);
      if (token) this.#latestToken = token;
      const implementation = this.settings.webSocket ?? (await defaultWebSocket());
      if (this.#closing.signal.aborted) return closedError();
      const ended = new Promise<PrombusError>((resolve) => (this.#sessionEnded = resolve));
      const session = new Session(this, implementation, token);
      this.#session = session;
      const why = await ended;
      if (session.wasUseful) this.#failures = 0;
      return this.#judge(why, token);
    } catch (error) {
      if (error instanceof PrombusError) return error;
      return errorFor("unreachable", messageOf(error), { cause: error });
    }
  }

  /** A provider may have a better token next time, but the same one is not tried twice. */
  #judge(why: PrombusError, token: Token | undefined): PrombusError {
    if (!isAboutToken(why) || typeof this.settings.token !== "function" || this.#rejectedToken === token?.token) return why;
    this.#rejectedToken = token?.token;
    return new NoTokenError("no_token", `the server rejected the token: ${why.message}`, { cause: why });
  }

  #isFatal(why: PrombusError): boolean {
    return isAboutToken(why) || (this.#firstConnected !== undefined && !this.settings.waitForServer);
  }

  #end(error: PrombusError): void {
    this.#error = error;
    this.outbox.end(error);
    for (const served of [...this.#served]) served.onClientEnd(error);
    this.#served.clear();
    this.#touched.clear();
    this.#setState("closed");
    this.events.emit("closed", { error });
  }

  /** Waits, without leaving the current task, until calls stop adding publishes, and then sends. */
  #gather(round: number, pushed: number): void {
    if (round >= MAX_GATHER_ROUNDS || pushed === this.outbox.pushed) return this.#flush();
    const seen = this.outbox.pushed;
    queueMicrotask(() => queueMicrotask(() => this.#gather(round + 1, seen)));
  }

  #flush(): void {
    this.#isFlushPlanned = false;
    const session = this.#session;
    if (!session) return;
    if (this.#isSessionOpen && this.#touched.size > 0) {
      const touched = [...this.#touched];
      this.#touched.clear();
      // What they write plans no other flush.
      this.#isFlushPlanned = true;
      for (const served of touched) served.serve(session);
      this.#isFlushPlanned = false;
    }
    session.flush();
    // Handlers that ran meanwhile have acknowledged.
    if (this.#touched.size > 0 && this.#isSessionOpen) this.touch();
  }

  #find(topic: string, group: string): Served | undefined {
    const route = this.#route;
    if (route && route.topic === topic && route.group === group) return route.to;
    let only: Served | undefined;
    let count = 0;
    for (const served of this.#served) {
      if (served.isNamed(topic, group)) {
        this.#route = { topic, group, to: served };
        return served;
      }
      if (served.hasGroup(group)) {
        only = served;
        count += 1;
      }
    }
    return count === 1 ? only : undefined;
  }

  #setState(state: ConnectionState): void {
    if (state === this.state) return;
    this.state = state;
    this.events.emit("state", state);
  }
}
