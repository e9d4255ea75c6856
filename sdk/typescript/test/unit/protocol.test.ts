import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { WebSocketServer, type WebSocket } from "ws";
import { type Client, connect } from "../../src/index.js";
import { until } from "../support/waiting.js";

type Frame = Record<string, unknown> & { op: string; corr: string };

/** A server whose replies a test writes by hand. */
async function scripted(context: TestContext, reply: (frame: Frame, socket: WebSocket) => void): Promise<Client> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket) => {
    socket.on("message", (data) => {
      const message = JSON.parse(String(data)) as Frame | Frame[];
      for (const frame of [message].flat()) {
        if (frame.op === "AUTH") socket.send(JSON.stringify({ op: "OK", corr: frame.corr }));
        else reply(frame, socket);
      }
    });
  });
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  const client = await connect({ url: `ws://127.0.0.1:${port}`, reconnect: { baseMs: 1, capMs: 5 }, closeTimeoutMs: 100 });
  context.after(async () => {
    await client.close();
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  return client;
}

test("the server's time is the record's, and frames of newer servers are passed over", async (context) => {
  const client = await scripted(context, (frame, socket) => {
    const ok = { op: "OK", corr: frame.corr, id: "i", seq: 3, ts: 42, something: "new" };
    socket.send(JSON.stringify([{ op: "NEWS", text: "hi" }, ok]));
  });
  assert.deepEqual(await client.publish("t", { a: 1 }), { id: "i", ts: 42, topic: "t", seq: 3, payload: { a: 1 } });
});

test("replies out of order, or none that is JSON, break the connection and nothing else", async (context) => {
  let connections = 0;
  const client = await scripted(context, (frame, socket) => {
    connections += 1;
    if (connections === 1) return socket.send(JSON.stringify({ op: "OK", corr: "999", id: "x", seq: 1 }));
    if (connections === 2) return socket.send("{not json");
    if (connections === 3) return socket.send(JSON.stringify({ op: "OK", corr: frame.corr }));
    return socket.send(JSON.stringify({ op: "OK", corr: frame.corr, id: "good", seq: 1 }));
  });
  const reasons: string[] = [];
  client.on("disconnected", ({ error }) => reasons.push(error.code));
  assert.equal((await client.publish("t", 1)).id, "good");
  assert.deepEqual(reasons, ["protocol_error", "protocol_error", "protocol_error"]);
});

test("a context of the server's counts before the subscriber's options", async (context) => {
  const client = await scripted(context, (frame, socket) => {
    if (frame.op !== "SUBSCRIBE") return;
    const event = { id: "i", ts: 1, topic: "t", seq: 1, payload: "p" };
    socket.send(JSON.stringify([
      { op: "OK", corr: frame.corr },
      { op: "EVENT", topic: "t", group: "g", event, ctx: { attempt: 2, maxAttempts: 9, ack_deadline_ms: 30_000 } },
    ]));
  });
  const contexts: object[] = [];
  await client.subscribe("t", "g", (delivery) => void contexts.push(delivery.context), { manualAck: true });
  await until("it came", () => contexts.length === 1);
  assert.deepEqual(contexts, [{ attempt: 2, maxAttempts: 9, cursor: { topic: "t", lastId: "i", lastTs: 1, lastSeq: 1 } }]);
});

test("a rejected acknowledgement does not run the handler again when its event comes once more", async (context) => {
  let acks = 0;
  const event = { op: "EVENT", topic: "t", group: "g", event: { id: "i", ts: 1, topic: "t", seq: 1, payload: 1 }, ctx: { attempt: 1, ack_deadline_ms: 30_000 } };
  const client = await scripted(context, (frame, socket) => {
    if (frame.op === "SUBSCRIBE") socket.send(JSON.stringify([{ op: "OK", corr: frame.corr }, event]));
    if (frame.op !== "ACK") return;
    acks += 1;
    if (acks === 1) socket.send(JSON.stringify([{ op: "ERR", code: "lease_lost", msg: "another member holds it", corr: frame.corr }, event]));
    else socket.send(JSON.stringify({ op: "OK", corr: frame.corr }));
  });
  let runs = 0;
  await client.subscribe("t", "g", () => void (runs += 1));
  await until("it is acknowledged again", () => acks === 2);
  assert.equal(runs, 1);
});
