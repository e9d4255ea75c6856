import { Deque } from "../deque.js";
const UNNUMBERED = -1;
class Held {
    assigned = new Set();
    told = new Set();
    lost = new Set();
    toConfirm = new Set();
    ready = new Set();
    lanes = new Map();
    busy = new Map();
    laneOf({ event: { partition } }) {
        return partition !== undefined && (this.assigned.has(partition) || this.told.has(partition)) ? partition : UNNUMBERED;
    }
    isOpen(lane) {
        return !this.busy.has(lane) && (lane === UNNUMBERED ? this.ready.size > 0 : this.ready.has(lane));
    }
}
export class Partitions {
    #topics = new Map();
    #lanes = new Map();
    #confirmed = [];
    #length = 0;
    #onFinished = [];
    #turn;
    #hooks;
    #host;
    constructor(hooks, host) {
        this.#hooks = hooks;
        this.#host = host;
    }
    get length() {
        return this.#length;
    }
    push(delivery) {
        const held = this.#of(delivery.event.topic);
        const lane = held.laneOf(delivery);
        const queue = held.lanes.get(lane) ?? new Deque();
        held.lanes.set(lane, queue);
        queue.push(delivery);
        this.#length += 1;
    }
    shift() {
        for (const held of this.#topics.values()) {
            for (const [lane, queue] of held.lanes) {
                const delivery = held.isOpen(lane) ? queue.shift() : undefined;
                if (!delivery)
                    continue;
                held.lanes.delete(lane);
                if (queue.length > 0)
                    held.lanes.set(lane, queue);
                held.busy.set(lane, (held.busy.get(lane) ?? 0) + 1);
                this.#lanes.set(delivery, lane);
                this.#length -= 1;
                return delivery;
            }
        }
        return undefined;
    }
    finished(delivery) {
        const lane = this.#lanes.get(delivery);
        if (lane === undefined)
            return;
        this.#lanes.delete(delivery);
        const { busy } = this.#of(delivery.event.topic);
        const left = (busy.get(lane) ?? 1) - 1;
        if (left > 0)
            busy.set(lane, left);
        else
            busy.delete(lane);
        for (const tell of this.#onFinished.splice(0))
            tell();
    }
    drain() {
        this.#length = 0;
        const all = [];
        for (const { lanes } of this.#topics.values()) {
            for (const queue of lanes.values())
                all.push(...queue.drain());
            lanes.clear();
        }
        return all;
    }
    assign(topic, partitions) {
        const { assigned } = this.#of(topic);
        for (const partition of partitions)
            assigned.add(partition);
        void this.settle();
    }
    revoke(topic, partitions) {
        const held = this.#of(topic);
        const unknown = [];
        for (const partition of partitions) {
            held.assigned.delete(partition);
            held.ready.delete(partition);
            if (!held.told.has(partition))
                unknown.push(partition);
            else
                held.toConfirm.add(partition) && held.lost.add(partition);
        }
        for (const lane of [...partitions, UNNUMBERED])
            this.#drop(held, lane);
        this.#confirm(topic, unknown);
        void this.settle();
    }
    loseAll() {
        this.#confirmed = [];
        for (const { assigned, toConfirm, ready, told, lost } of this.#topics.values()) {
            for (const set of [assigned, toConfirm, ready])
                set.clear();
            for (const partition of told)
                lost.add(partition);
        }
        return this.settle();
    }
    takeConfirmed() {
        return this.#confirmed.splice(0);
    }
    settle() {
        this.#turn ??= this.#callHooks();
        return this.#turn;
    }
    async #callHooks() {
        await undefined;
        try {
            for (let isChanged = true; isChanged;) {
                isChanged = false;
                for (const [topic, held] of this.#topics) {
                    if (held.lost.size > 0)
                        isChanged = true;
                    if (held.lost.size > 0)
                        await this.#callRevoked(topic, held);
                    const assigned = [...held.assigned].filter((partition) => !held.told.has(partition)).sort(ascending);
                    if (assigned.length > 0)
                        isChanged = true;
                    if (assigned.length > 0)
                        await this.#callAssigned(topic, held, assigned);
                }
            }
        }
        catch (thrown) {
            this.#host.onHookFailed(thrown);
        }
        this.#turn = undefined;
    }
    async #callAssigned(topic, { assigned, told, lost, ready }, fresh) {
        for (const partition of fresh)
            told.add(partition);
        await this.#hooks.onAssigned?.(fresh, topic);
        for (const partition of fresh)
            if (assigned.has(partition) && !lost.has(partition))
                ready.add(partition);
        this.#host.onReady();
    }
    async #callRevoked(topic, { lost, told, busy, toConfirm }) {
        const isBusy = (partition) => busy.has(partition);
        while (isBusy(UNNUMBERED) || [...lost].some(isBusy))
            await new Promise((tell) => this.#onFinished.push(tell));
        const revoked = [...lost].sort(ascending);
        lost.clear();
        for (const partition of revoked)
            told.delete(partition);
        await this.#hooks.onRevoked?.(revoked, topic);
        this.#confirm(topic, revoked.filter((partition) => toConfirm.delete(partition)));
    }
    #confirm(topic, partitions) {
        if (partitions.length === 0)
            return;
        this.#confirmed.push({ topic, partitions });
        this.#host.onConfirmed();
    }
    #drop({ lanes }, lane) {
        const dropped = lanes.get(lane)?.drain() ?? [];
        lanes.delete(lane);
        this.#length -= dropped.length;
        for (const delivery of dropped)
            this.#host.onDropped(delivery);
    }
    #of(topic) {
        const held = this.#topics.get(topic) ?? new Held();
        this.#topics.set(topic, held);
        return held;
    }
}
function ascending(one, other) {
    return one - other;
}
