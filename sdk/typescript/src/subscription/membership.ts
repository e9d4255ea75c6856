/** A subscription as the server knows it: it joins, takes deliveries in, settles them, and joins again after a break. */

import { Deque } from "../deque.js";
import { ClosedError, ConnectionLostError, HookFailedError, LeaseLostError, messageOf, type PrombusError, UnknownOutcomeError, UnreachableError } from "../errors.js";
import type { EventFrame, OkFrame, PartitionsFrame } from "../frames.js";
import type { Link, Served } from "../link/link.js";
import type { Session } from "../link/session.js";
import { stepEvents, stepRecords } from "../publish/encode.js";
import type { EventRecord, GroupOptions, OutgoingEvent, StoredRecord } from "../record.js";
import { sleep } from "../timers.js";
import { PendingAcks } from "./acks.js";
import { Delivery } from "./delivery.js";
import { Leases } from "./leases.js";
import type { SubscriptionSettings } from "./options.js";
import { type DeliveryQueue, Partitions } from "./partitions.js";

/** Notified of what becomes of a subscription. */
export interface MembershipListener {
  /** Deliveries wait to be taken. */
  onDeliveries(): void;
  /** A partition hook threw: the subscription has to end. */
  onHookFailed(): void;
  /** Nothing more will come; without an error where it was unsubscribed. */
  onOver(error: PrombusError | undefined): void;
}

/** Reasons of NACKs are cut here. */
const MAX_REASON_CHARS = 1_000;
/** Topics of an ephemeral subscription whose positions are remembered over a break. */
const MAX_RESUMED_TOPICS = 10_000;
/** How far back an ephemeral subscription to several topics goes on from, before the last event that came. */
const RESUME_OVERLAP_MS = 10_000;

/** A frame that is of use on this connection only. */
interface PendingWrite {
  write(session: Session): void;
  /** The connection broke before it was written. */
  lost(): void;
}

type Phase = "new" | "asked" | "open" | "over";

export class Membership implements Served {
  /** Counts connections: a lease is gone with its connection. */
  #epoch = 0;
  #phase: Phase = "new";
  #wasOpen = false;
  #isLeaving = false;
  #isPaused = false;
  #isPauseSent = false;
  readonly #hasOneTopic: boolean;
  readonly #queue: DeliveryQueue;
  readonly #partitions: Partitions | undefined;
  #hookError: PrombusError | undefined;
  readonly #leases: Leases;
  readonly #acks: PendingAcks;
  /** NACKs, extensions and atomic steps of this connection that wait to be written. */
  #writes: PendingWrite[] = [];
  /** Positions of an ephemeral subscription: of now, and as of the last break. */
  #positions = new Map<string, number>();
  #resumed = new Map<string, number>();
  #firstTs: number | undefined;
  #lastTs: number | undefined;
  #onOpened: { resolve(): void; reject(error: unknown): void } | undefined;
  #onLeft: (() => void)[] = [];
  #groupName: string | undefined;
  readonly #link: Link;
  readonly #namedGroup: string | undefined;
  readonly #settings: SubscriptionSettings;
  readonly #filter: ((event: EventRecord) => boolean) | undefined;
  readonly #listener: MembershipListener;

  constructor(
    link: Link,
    readonly topic: string,
    namedGroup: string | undefined,
    settings: SubscriptionSettings,
    filter: ((event: EventRecord) => boolean) | undefined,
    listener: MembershipListener,
  ) {
    this.#link = link;
    this.#namedGroup = namedGroup;
    this.#settings = settings;
    this.#filter = filter;
    this.#listener = listener;
    this.#hasOneTopic = !topic.includes("*") && !settings.wire.topics?.length;
    this.#groupName = namedGroup;
    this.#acks = new PendingAcks(this.#hasOneTopic, link.settings.logger);
    this.#leases = new Leases(settings.maxExtensionMs, (due) => this.extend(due));
    if (settings.partitioned) this.#partitions = this.#makePartitions(settings);
    this.#queue = this.#partitions ?? new Deque<Delivery>();
  }

  /** The group; that of an ephemeral subscription is named by the server, anew for each connection. */
  get group(): string {
    return this.#groupName ?? "";
  }

  /** Joins; resolves when the server has the subscription. */
  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#link.ended) return reject(this.#link.ended);
      this.#onOpened = { resolve, reject };
      this.#link.add(this);
    });
  }

  /** The next delivery that waits. */
  take(): Delivery | undefined {
    if (this.#isPaused || this.#isLeaving) return undefined;
    const delivery = this.#queue.shift();
    if (delivery) delivery.isTaken = true;
    if (this.#phase === "new" && this.#queue.length === 0) this.#link.touch(this);
    return delivery;
  }

  /** A delivery's handler has returned, or its taker asks for the next one. */
  finished(delivery: Delivery): void {
    this.#partitions?.finished(delivery);
  }

  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    this.#link.touch(this);
  }

  /** Takes nothing new from now on. */
  stop(): void {
    this.#isLeaving = true;
  }

  /** Lets the partitions go, when no handler runs. */
  async letGo(): Promise<void> {
    await this.#partitions?.loseAll();
  }

  /** Leaves; resolves when the server has the last acknowledgements and the subscription is gone. */
  leave(): Promise<void> {
    this.#isLeaving = true;
    return new Promise((resolve) => {
      if (this.#phase === "over") return resolve();
      this.#onLeft.push(resolve);
      if (this.#phase === "new" && !this.#wasOpen) return this.#over(undefined);
      this.#link.touch(this);
    });
  }

  ack(delivery: Delivery): void {
    const { topic, id } = delivery.event;
    const key = this.#release(delivery);
    if (this.#phase === "over" || (delivery.epoch !== this.#epoch && this.#namedGroup === undefined)) return;
    // The lease is gone with its connection, but a late acknowledgement counts where no other member holds the event.
    if (delivery.epoch !== this.#epoch) this.#acks.memory.expect([key], Date.now());
    this.#acks.push(topic, id);
    this.#link.touch(this);
  }

  ackConfirmed(delivery: Delivery): Promise<void> {
    const { topic, id } = delivery.event;
    const key = this.#release(delivery);
    if (this.#phase === "over") return Promise.reject(this.#closedError());
    if (delivery.epoch !== this.#epoch) this.#acks.memory.expect([key], Date.now());
    this.#link.touch(this);
    return this.#acks.confirm(topic, id);
  }

  nack(delivery: Delivery, reason: string | undefined, delayMs: number | undefined): void {
    const { topic, id } = delivery.event;
    this.#release(delivery);
    const fields = { topic, id, reason: reason?.slice(0, MAX_REASON_CHARS), delay_ms: delayMs };
    // Without its connection the lease is gone, and the event comes again by itself.
    if (delivery.epoch === this.#epoch) this.#write("NACK", fields);
  }

  extend(due: Delivery[], extendMs?: number): void {
    const byTopic = new Map<string, string[]>();
    let leaseMs = 0;
    for (const { epoch, event, leaseMs: ownMs } of due) {
      if (epoch !== this.#epoch) continue;
      leaseMs = Math.max(leaseMs, ownMs);
      const ids = byTopic.get(event.topic);
      if (ids) ids.push(event.id);
      else byTopic.set(event.topic, [event.id]);
    }
    for (const [topic, ids] of byTopic) this.#write("MODACK", { topic, ids, extend_ms: Math.ceil(extendMs ?? leaseMs) });
  }

  async ackAndPublish(delivery: Delivery, events: readonly OutgoingEvent[]): Promise<StoredRecord[]> {
    if (delivery.isSettled) throw new LeaseLostError("lease_lost", "the delivery is settled already");
    const publish = stepEvents(events, this.#link.settings.trace.inject?.());
    delivery.isSettled = true;
    for (;;) {
      try {
        const frame = await this.#step(delivery, publish);
        this.#acks.memory.confirmed([this.#release(delivery)], Date.now());
        return stepRecords(publish, frame.published);
      } catch (error) {
        const { code, retryAfterMs } = error as PrombusError;
        // Nothing happened, so the lease is as it was.
        const isRefused = code !== "unknown_outcome" && code !== "connection_lost" && code !== "closed";
        if (code !== "rate_limited" || !this.#link.settings.waitForRateLimit) {
          if (isRefused) delivery.isSettled = false;
          throw error;
        }
        await sleep(retryAfterMs ?? RATE_LIMIT_MS);
      }
    }
  }

  isNamed(topic: string, group: string): boolean {
    return topic === this.topic && group === this.#groupName;
  }

  hasGroup(group: string): boolean {
    return group === this.#groupName;
  }

  deliver({ event, ctx }: EventFrame, nowMs: number): void {
    if (this.#isLeaving || this.#phase === "over") return;
    const { topic, id } = event;
    const key = this.#acks.keyOf(topic, id);
    if (this.#namedGroup === undefined && !this.#advance(event)) return this.#acks.push(topic, id);
    if (this.#acks.memory.isRepeated(key, nowMs)) return this.#acks.push(topic, id);
    const held = this.#leases.get(key);
    if (held) {
      // Its handler still runs: it goes on under the new lease, and no other one is started.
      held.epoch = this.#epoch;
      held.attempt = ctx.attempt;
      held.leasedAtMs = nowMs;
      return;
    }
    if (this.#filter && !this.#filter(event)) return this.#acks.push(topic, id);
    const maxAttempts = ctx.maxAttempts ?? this.#settings.maxAttempts;
    const delivery = new Delivery(this, event, ctx.attempt, maxAttempts, this.#epoch, ctx.ack_deadline_ms, nowMs, nowMs);
    this.#leases.hold(key, delivery);
    this.#queue.push(delivery);
  }

  onPartitions({ op, topic, partitions }: PartitionsFrame): void {
    if (this.#phase === "over" || this.#isLeaving) return;
    if (op === "ASSIGN") this.#partitions?.assign(topic, partitions);
    else this.#partitions?.revoke(topic, partitions);
  }

  afterDelivery(): void {
    if (this.#queue.length > 0) this.#listener.onDeliveries();
    if (!this.#acks.isEmpty) this.#link.touch(this);
  }

  serve(session: Session): void {
    // An ephemeral group is gone with its connection, so what waits of it is handled before there is another.
    if (this.#phase === "new" && this.#queue.length === 0) return this.#subscribe(session);
    if (this.#phase !== "open") return;
    const { topic, group } = this;
    if (this.#isPaused !== this.#isPauseSent) {
      this.#isPauseSent = this.#isPaused;
      session.request(this.#isPaused ? "PAUSE" : "RESUME", { topic, group }, IGNORED);
      if (!this.#isPaused) this.#listener.onDeliveries();
    }
    for (const pending of this.#writes.splice(0)) pending.write(session);
    this.#acks.write(session, group, () => this.#link.touch(this));
    // What was acknowledged of them counts only if it comes first.
    const revoked = this.#acks.isEmpty ? this.#partitions?.takeConfirmed() : undefined;
    for (const each of revoked ?? []) session.request("REVOKED", { ...each, group }, IGNORED);
    if (this.#isLeaving && this.#onLeft.length > 0 && this.#acks.isEmpty) this.#unsubscribe(session);
  }

  onDisconnect(): void {
    if (this.#phase === "over") return;
    this.#epoch += 1;
    this.#phase = "new";
    this.#isPauseSent = false;
    for (const pending of this.#writes.splice(0)) pending.lost();
    void this.#partitions?.loseAll();
    if (this.#namedGroup === undefined) {
      // The group is gone too.
      this.#acks.end(new ConnectionLostError("connection_lost", "the connection broke"));
      this.#resumed = new Map(this.#positions);
    } else {
      // The server delivers again what was not taken yet.
      this.#queue.drain();
      this.#leases.releaseWaiting();
      this.#acks.onDisconnect(Date.now());
    }
    if (this.#isLeaving && this.#onLeft.length > 0 && this.#acks.isEmpty) this.#over(undefined);
  }

  onClientEnd(error: PrombusError): void {
    this.#over(error);
  }

  #makePartitions({ hooks }: SubscriptionSettings): Partitions {
    return new Partitions(hooks, {
      onReady: () => this.#listener.onDeliveries(),
      onDropped: (delivery) => void this.#release(delivery),
      onConfirmed: () => this.#link.touch(this),
      onHookFailed: (cause) => {
        this.#link.settings.logger.error?.("prombus: a partition hook failed", { topic: this.topic, error: cause });
        this.#hookError = new HookFailedError("hook_failed", `a partition hook failed: ${messageOf(cause)}`, { cause });
        this.#listener.onHookFailed();
      },
    });
  }

  #subscribe(session: Session): void {
    this.#phase = "asked";
    session.request("SUBSCRIBE", { topic: this.topic, group: this.#namedGroup, opts: this.#startOptions() }, {
      ok: (frame) => {
        if (this.#phase !== "asked") return;
        this.#phase = "open";
        this.#wasOpen = true;
        this.#groupName = frame.group ?? this.#groupName;
        this.#onOpened?.resolve();
        this.#onOpened = undefined;
        this.#link.touch(this);
      },
      err: (error) => {
        const isPassing = this.#wasOpen && error.retryable;
        if (isPassing) session.fail(new UnreachableError("unreachable", error.message, { cause: error, retryAfterMs: error.retryAfterMs }));
        else this.#over(error);
      },
      lost: () => undefined,
    });
  }

  /** A durable group has its cursor; an ephemeral one goes on behind the last event that came. */
  #startOptions(): GroupOptions {
    const { wire } = this.#settings;
    const seq = this.#resumed.get(this.topic);
    if (this.#namedGroup !== undefined || this.#lastTs === undefined) return wire;
    const { from: _from, ts: _ts, afterId: _afterId, seq: _seq, ...rest } = wire;
    if (this.#hasOneTopic && seq !== undefined) return { ...rest, from: "seq", seq: seq + 1 };
    // Topics come in turns: of one that had its turn last, earlier events may not have come yet. What came already is passed over.
    return { ...rest, from: "ts", ts: Math.max(this.#firstTs ?? 0, this.#lastTs - RESUME_OVERLAP_MS) };
  }

  /** Records how far an ephemeral subscription has come; false for an event that came before the last break. */
  #advance({ topic, seq, ts }: EventRecord): boolean {
    if (seq <= (this.#resumed.get(topic) ?? 0)) return false;
    this.#firstTs ??= ts;
    this.#lastTs = ts;
    if (this.#positions.size >= MAX_RESUMED_TOPICS && !this.#positions.has(topic)) this.#positions.clear();
    if (seq > (this.#positions.get(topic) ?? 0)) this.#positions.set(topic, seq);
    return true;
  }

  #unsubscribe(session: Session): void {
    this.#phase = "asked";
    const over = (): void => this.#over(undefined);
    session.request("UNSUBSCRIBE", { topic: this.topic, group: this.group }, { ok: over, err: over, lost: over });
  }

  #step(delivery: Delivery, publish: object[]): Promise<OkFrame> {
    return new Promise((resolve, reject) => {
      const { topic, id } = delivery.event;
      const unsent = (): void => {
        this.#release(delivery);
        reject(new ConnectionLostError("connection_lost", "the connection broke; the event comes again"));
      };
      const lost = (): void => {
        this.#release(delivery);
        reject(new UnknownOutcomeError("unknown_outcome", "the connection broke before the reply; the event comes again if nothing has happened"));
      };
      if (delivery.epoch !== this.#epoch || this.#phase !== "open") return unsent();
      const write = (session: Session): void => {
        session.request("ACK", { topic, group: this.group, ids: [id], publish }, { ok: resolve, err: reject, lost });
      };
      this.#writes.push({ write, lost: unsent });
      this.#link.touch(this);
    });
  }

  #write(op: string, fields: object): void {
    if (this.#phase === "over") return;
    const write = (session: Session): void => session.request(op, { ...fields, group: this.group }, IGNORED);
    this.#writes.push({ write, lost: () => undefined });
    this.#link.touch(this);
  }

  /** Forgets a delivery, and says what it is known by. */
  #release(delivery: Delivery): string {
    const key = this.#acks.keyOf(delivery.event.topic, delivery.event.id);
    this.#leases.release(key);
    return key;
  }

  #closedError(): PrombusError {
    return this.#link.ended ?? new ClosedError("closed", "the subscription is closed");
  }

  #over(cause: PrombusError | undefined): void {
    if (this.#phase === "over") return;
    const error = cause ?? this.#hookError;
    this.#phase = "over";
    this.#link.remove(this);
    for (const pending of this.#writes.splice(0)) pending.lost();
    this.#queue.drain();
    void this.#partitions?.loseAll();
    this.#leases.end();
    this.#acks.end(error ?? this.#closedError());
    this.#onOpened?.reject(error ?? this.#closedError());
    this.#onOpened = undefined;
    for (const left of this.#onLeft.splice(0)) left();
    this.#listener.onOver(error);
  }
}

/** How long an atomic step waits where a rate limit does not say. */
const RATE_LIMIT_MS = 100;

/** A frame whose reply tells nothing new: an error means that the lease is gone, and the event comes again. */
const IGNORED = { ok: () => undefined, err: () => undefined, lost: () => undefined };
