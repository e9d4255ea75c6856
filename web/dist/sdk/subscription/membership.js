import { Deque } from "../deque.js";
import { ClosedError, ConnectionLostError, HookFailedError, LeaseLostError, messageOf, UnknownOutcomeError, UnreachableError } from "../errors.js";
import { stepEvents, stepRecords } from "../publish/encode.js";
import { sleep } from "../timers.js";
import { PendingAcks } from "./acks.js";
import { Delivery } from "./delivery.js";
import { Leases } from "./leases.js";
import { Partitions } from "./partitions.js";
const MAX_REASON_CHARS = 1_000;
const MAX_RESUMED_TOPICS = 10_000;
const RESUME_OVERLAP_MS = 10_000;
export class Membership {
    topic;
    #epoch = 0;
    #phase = "new";
    #wasOpen = false;
    #isLeaving = false;
    #isPaused = false;
    #isPauseSent = false;
    #hasOneTopic;
    #queue;
    #partitions;
    #hookError;
    #leases;
    #acks;
    #writes = [];
    #positions = new Map();
    #resumed = new Map();
    #firstTs;
    #lastTs;
    #onOpened;
    #onLeft = [];
    #groupName;
    #link;
    #namedGroup;
    #settings;
    #filter;
    #listener;
    constructor(link, topic, namedGroup, settings, filter, listener) {
        this.topic = topic;
        this.#link = link;
        this.#namedGroup = namedGroup;
        this.#settings = settings;
        this.#filter = filter;
        this.#listener = listener;
        this.#hasOneTopic = !topic.includes("*") && !settings.wire.topics?.length;
        this.#groupName = namedGroup;
        this.#acks = new PendingAcks(this.#hasOneTopic, link.settings.logger);
        this.#leases = new Leases(settings.maxExtensionMs, (due) => this.extend(due));
        if (settings.partitioned)
            this.#partitions = this.#makePartitions(settings);
        this.#queue = this.#partitions ?? new Deque();
    }
    get group() {
        return this.#groupName ?? "";
    }
    open() {
        return new Promise((resolve, reject) => {
            if (this.#link.ended)
                return reject(this.#link.ended);
            this.#onOpened = { resolve, reject };
            this.#link.add(this);
        });
    }
    take() {
        if (this.#isPaused || this.#isLeaving)
            return undefined;
        const delivery = this.#queue.shift();
        if (delivery)
            delivery.isTaken = true;
        if (this.#phase === "new" && this.#queue.length === 0)
            this.#link.touch(this);
        return delivery;
    }
    finished(delivery) {
        this.#partitions?.finished(delivery);
    }
    setPaused(isPaused) {
        this.#isPaused = isPaused;
        this.#link.touch(this);
    }
    stop() {
        this.#isLeaving = true;
    }
    async letGo() {
        await this.#partitions?.loseAll();
    }
    leave() {
        this.#isLeaving = true;
        return new Promise((resolve) => {
            if (this.#phase === "over")
                return resolve();
            this.#onLeft.push(resolve);
            if (this.#phase === "new" && !this.#wasOpen)
                return this.#over(undefined);
            this.#link.touch(this);
        });
    }
    ack(delivery) {
        const { topic, id } = delivery.event;
        const key = this.#release(delivery);
        if (this.#phase === "over" || (delivery.epoch !== this.#epoch && this.#namedGroup === undefined))
            return;
        if (delivery.epoch !== this.#epoch)
            this.#acks.memory.expect([key], Date.now());
        this.#acks.push(topic, id);
        this.#link.touch(this);
    }
    ackConfirmed(delivery) {
        const { topic, id } = delivery.event;
        const key = this.#release(delivery);
        if (this.#phase === "over")
            return Promise.reject(this.#closedError());
        if (delivery.epoch !== this.#epoch)
            this.#acks.memory.expect([key], Date.now());
        this.#link.touch(this);
        return this.#acks.confirm(topic, id);
    }
    nack(delivery, reason, delayMs) {
        const { topic, id } = delivery.event;
        this.#release(delivery);
        const fields = { topic, id, reason: reason?.slice(0, MAX_REASON_CHARS), delay_ms: delayMs };
        if (delivery.epoch === this.#epoch)
            this.#write("NACK", fields);
    }
    extend(due, extendMs) {
        const byTopic = new Map();
        let leaseMs = 0;
        for (const { epoch, event, leaseMs: ownMs } of due) {
            if (epoch !== this.#epoch)
                continue;
            leaseMs = Math.max(leaseMs, ownMs);
            const ids = byTopic.get(event.topic);
            if (ids)
                ids.push(event.id);
            else
                byTopic.set(event.topic, [event.id]);
        }
        for (const [topic, ids] of byTopic)
            this.#write("MODACK", { topic, ids, extend_ms: Math.ceil(extendMs ?? leaseMs) });
    }
    async ackAndPublish(delivery, events) {
        if (delivery.isSettled)
            throw new LeaseLostError("lease_lost", "the delivery is settled already");
        const publish = stepEvents(events, this.#link.settings.trace.inject?.());
        delivery.isSettled = true;
        for (;;) {
            try {
                const frame = await this.#step(delivery, publish);
                this.#acks.memory.confirmed([this.#release(delivery)], Date.now());
                return stepRecords(publish, frame.published);
            }
            catch (error) {
                const { code, retryAfterMs } = error;
                const isRefused = code !== "unknown_outcome" && code !== "connection_lost" && code !== "closed";
                if (code !== "rate_limited" || !this.#link.settings.waitForRateLimit) {
                    if (isRefused)
                        delivery.isSettled = false;
                    throw error;
                }
                await sleep(retryAfterMs ?? RATE_LIMIT_MS);
            }
        }
    }
    isNamed(topic, group) {
        return topic === this.topic && group === this.#groupName;
    }
    hasGroup(group) {
        return group === this.#groupName;
    }
    deliver({ event, ctx }, nowMs) {
        if (this.#isLeaving || this.#phase === "over")
            return;
        const { topic, id } = event;
        const key = this.#acks.keyOf(topic, id);
        if (this.#namedGroup === undefined && !this.#advance(event))
            return this.#acks.push(topic, id);
        if (this.#acks.memory.isRepeated(key, nowMs))
            return this.#acks.push(topic, id);
        const held = this.#leases.get(key);
        if (held) {
            held.epoch = this.#epoch;
            held.attempt = ctx.attempt;
            held.leasedAtMs = nowMs;
            return;
        }
        if (this.#filter && !this.#filter(event))
            return this.#acks.push(topic, id);
        const maxAttempts = ctx.maxAttempts ?? this.#settings.maxAttempts;
        const delivery = new Delivery(this, event, ctx.attempt, maxAttempts, this.#epoch, ctx.ack_deadline_ms, nowMs, nowMs);
        this.#leases.hold(key, delivery);
        this.#queue.push(delivery);
    }
    onPartitions({ op, topic, partitions }) {
        if (this.#phase === "over" || this.#isLeaving)
            return;
        if (op === "ASSIGN")
            this.#partitions?.assign(topic, partitions);
        else
            this.#partitions?.revoke(topic, partitions);
    }
    afterDelivery() {
        if (this.#queue.length > 0)
            this.#listener.onDeliveries();
        if (!this.#acks.isEmpty)
            this.#link.touch(this);
    }
    serve(session) {
        if (this.#phase === "new" && this.#queue.length === 0)
            return this.#subscribe(session);
        if (this.#phase !== "open")
            return;
        const { topic, group } = this;
        if (this.#isPaused !== this.#isPauseSent) {
            this.#isPauseSent = this.#isPaused;
            session.request(this.#isPaused ? "PAUSE" : "RESUME", { topic, group }, IGNORED);
            if (!this.#isPaused)
                this.#listener.onDeliveries();
        }
        for (const pending of this.#writes.splice(0))
            pending.write(session);
        this.#acks.write(session, group, () => this.#link.touch(this));
        const revoked = this.#acks.isEmpty ? this.#partitions?.takeConfirmed() : undefined;
        for (const each of revoked ?? [])
            session.request("REVOKED", { ...each, group }, IGNORED);
        if (this.#isLeaving && this.#onLeft.length > 0 && this.#acks.isEmpty)
            this.#unsubscribe(session);
    }
    onDisconnect() {
        if (this.#phase === "over")
            return;
        this.#epoch += 1;
        this.#phase = "new";
        this.#isPauseSent = false;
        for (const pending of this.#writes.splice(0))
            pending.lost();
        void this.#partitions?.loseAll();
        if (this.#namedGroup === undefined) {
            this.#acks.end(new ConnectionLostError("connection_lost", "the connection broke"));
            this.#resumed = new Map(this.#positions);
        }
        else {
            this.#queue.drain();
            this.#leases.releaseWaiting();
            this.#acks.onDisconnect(Date.now());
        }
        if (this.#isLeaving && this.#onLeft.length > 0 && this.#acks.isEmpty)
            this.#over(undefined);
    }
    onClientEnd(error) {
        this.#over(error);
    }
    #makePartitions({ hooks }) {
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
    #subscribe(session) {
        this.#phase = "asked";
        session.request("SUBSCRIBE", { topic: this.topic, group: this.#namedGroup, opts: this.#startOptions() }, {
            ok: (frame) => {
                if (this.#phase !== "asked")
                    return;
                this.#phase = "open";
                this.#wasOpen = true;
                this.#groupName = frame.group ?? this.#groupName;
                this.#onOpened?.resolve();
                this.#onOpened = undefined;
                this.#link.touch(this);
            },
            err: (error) => {
                const isPassing = this.#wasOpen && error.retryable;
                if (isPassing)
                    session.fail(new UnreachableError("unreachable", error.message, { cause: error, retryAfterMs: error.retryAfterMs }));
                else
                    this.#over(error);
            },
            lost: () => undefined,
        });
    }
    #startOptions() {
        const { wire } = this.#settings;
        const seq = this.#resumed.get(this.topic);
        if (this.#namedGroup !== undefined || this.#lastTs === undefined)
            return wire;
        const { from: _from, ts: _ts, afterId: _afterId, seq: _seq, ...rest } = wire;
        if (this.#hasOneTopic && seq !== undefined)
            return { ...rest, from: "seq", seq: seq + 1 };
        return { ...rest, from: "ts", ts: Math.max(this.#firstTs ?? 0, this.#lastTs - RESUME_OVERLAP_MS) };
    }
    #advance({ topic, seq, ts }) {
        if (seq <= (this.#resumed.get(topic) ?? 0))
            return false;
        this.#firstTs ??= ts;
        this.#lastTs = ts;
        if (this.#positions.size >= MAX_RESUMED_TOPICS && !this.#positions.has(topic))
            this.#positions.clear();
        if (seq > (this.#positions.get(topic) ?? 0))
            this.#positions.set(topic, seq);
        return true;
    }
    #unsubscribe(session) {
        this.#phase = "asked";
        const over = () => this.#over(undefined);
        session.request("UNSUBSCRIBE", { topic: this.topic, group: this.group }, { ok: over, err: over, lost: over });
    }
    #step(delivery, publish) {
        return new Promise((resolve, reject) => {
            const { topic, id } = delivery.event;
            const unsent = () => {
                this.#release(delivery);
                reject(new ConnectionLostError("connection_lost", "the connection broke; the event comes again"));
            };
            const lost = () => {
                this.#release(delivery);
                reject(new UnknownOutcomeError("unknown_outcome", "the connection broke before the reply; the event comes again if nothing has happened"));
            };
            if (delivery.epoch !== this.#epoch || this.#phase !== "open")
                return unsent();
            const write = (session) => {
                session.request("ACK", { topic, group: this.group, ids: [id], publish }, { ok: resolve, err: reject, lost });
            };
            this.#writes.push({ write, lost: unsent });
            this.#link.touch(this);
        });
    }
    #write(op, fields) {
        if (this.#phase === "over")
            return;
        const write = (session) => session.request(op, { ...fields, group: this.group }, IGNORED);
        this.#writes.push({ write, lost: () => undefined });
        this.#link.touch(this);
    }
    #release(delivery) {
        const key = this.#acks.keyOf(delivery.event.topic, delivery.event.id);
        this.#leases.release(key);
        return key;
    }
    #closedError() {
        return this.#link.ended ?? new ClosedError("closed", "the subscription is closed");
    }
    #over(cause) {
        if (this.#phase === "over")
            return;
        const error = cause ?? this.#hookError;
        this.#phase = "over";
        this.#link.remove(this);
        for (const pending of this.#writes.splice(0))
            pending.lost();
        this.#queue.drain();
        void this.#partitions?.loseAll();
        this.#leases.end();
        this.#acks.end(error ?? this.#closedError());
        this.#onOpened?.reject(error ?? this.#closedError());
        this.#onOpened = undefined;
        for (const left of this.#onLeft.splice(0))
            left();
        this.#listener.onOver(error);
    }
}
const RATE_LIMIT_MS = 100;
const IGNORED = { ok: () => undefined, err: () => undefined, lost: () => undefined };
