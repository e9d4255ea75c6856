/** What is done to a group: moving its cursor and back, pausing, changing, removing. */

import { get, send } from "../api.js";
import { h, replace } from "../dom.js";
import * as format from "../format.js";
import type { Explanation, GroupInfo, SeekReply } from "../model.js";
import { confirmDialog, openDialog } from "../parts/dialog.js";
import { field, input, select } from "../parts/fields.js";
import { messageOf } from "../parts/notice.js";
import { toast } from "../parts/toast.js";
import { address, go } from "../router.js";

/** Moves the cursor after showing what that would do. */
export async function seekDialog(topic: string, name: string, onDone: () => void): Promise<void> {
  const from = select([["earliest", "the beginning"], ["latest", "the end"], ["ts", "a time"], ["seq", "a position"], ["afterId", "behind an id"]], "ts");
  const value = input();
  const effect = h("div", { class: "preview", role: "status" });
  const place = (): Record<string, string | number> => {
    const text = value.value.trim();
    switch (from.value) {
      case "ts": return { from: "ts", ts: new Date(text).getTime() || 0 };
      case "seq": return { from: "seq", seq: Math.max(1, Number(text) || 1) };
      case "afterId": return { from: "afterId", afterId: text };
      default: return { from: from.value };
    }
  };
  let turn = 0;
  const show = async (): Promise<void> => {
    const now = (turn += 1);
    try {
      const reply = await send<SeekReply>("POST", "/cursors", { topic, group: name, ...place(), dry_run: true });
      if (now === turn) replace(effect, inWords(reply));
    } catch (error) {
      if (now === turn) replace(effect, messageOf(error));
    }
  };
  const prepare = (): void => {
    const row = value.parentElement;
    if (row) row.hidden = from.value === "earliest" || from.value === "latest";
    value.type = from.value === "ts" ? "datetime-local" : from.value === "seq" ? "number" : "text";
    value.step = from.value === "ts" ? "0.001" : "1";
    value.value = from.value === "ts" ? format.localInput(format.serverNow() - 600_000) : from.value === "seq" ? "1" : "";
    void show();
  };
  from.addEventListener("change", prepare);
  value.addEventListener("input", () => void show());
  const body = [field("Move the cursor to", from), field("Value", value), effect];
  prepare();
  await openDialog({
    title: `Move the cursor of ${name}`, action: "Move", body,
    run: async () => {
      const reply = await send<SeekReply>("POST", "/cursors", { topic, group: name, ...place() });
      toast(`The cursor is at ${format.count(reply.cursor)}.`, "good");
      onDone();
    },
  });
}

function inWords(reply: SeekReply): string {
  const parts = [
    reply.redelivered > 0 ? `${format.plural(reply.redelivered, "settled event")} would be delivered again` : "",
    reply.skipped > 0 ? `${format.plural(reply.skipped, "unsettled event")} would be skipped` : "",
  ].filter((part) => part !== "");
  const words = parts.length > 0 ? parts.join(", and ") : "Nothing would be delivered again or skipped";
  return `${words}. The cursor would be at ${format.count(reply.cursor)}${reply.beyond_tail ? ", the end of the topic" : ""}.`;
}

/** Sets the group back to where it was before the last seek. */
export async function undoDialog(topic: string, name: string, onDone: () => void): Promise<void> {
  const text = "The group goes back to what it had settled before its cursor was last moved. The server declines where too much was settled since.";
  await openDialog({
    title: `Undo the last move of ${name}?`, action: "Undo", body: [h("p", {}, text)],
    run: async () => {
      const reply = await send<SeekReply>("POST", "/cursors/undo", { topic, group: name });
      toast(`The cursor is back at ${format.count(reply.cursor)}.`, "good");
      onDone();
    },
  });
}

/** Stops or starts deliveries to all members, until the other is asked for; members stay subscribed. */
export async function setPaused(topic: string, name: string, isPaused: boolean, onDone: () => void): Promise<void> {
  try {
    await send<GroupInfo>("POST", isPaused ? "/groups/pause" : "/groups/resume", { topic, group: name });
    toast(isPaused ? `Group ${name} is paused: nothing is delivered until it is resumed.` : `Group ${name} goes on.`, "good");
    onDone();
  } catch (error) {
    toast(messageOf(error), "bad");
  }
}

export async function changeDialog(topic: string, name: string): Promise<void> {
  const { group: info } = await get<Explanation>("/explain", { topic, group: name });
  const attempts = input({ type: "number", min: 1, value: info.max_attempts });
  const ordering = select([["none", "none"], ["key", "by key: one event of each key at a time"]], info.ordering);
  await openDialog({
    title: `Change ${name}`, action: "Save", body: [field("Most attempts", attempts, "Then an event is a dead letter."), field("Ordering", ordering)],
    run: async () => {
      await send("PATCH", "/groups", { topic, group: name, maxAttempts: Number(attempts.value), ordering: ordering.value });
      toast("The group was changed.", "good");
    },
  });
}

export async function removeGroup(topic: string, name: string): Promise<void> {
  const text = `The cursor and what was acknowledged are forgotten; subscriptions end. Events stay in the topic.`;
  const isDone = await confirmDialog(`Remove group ${name}?`, text, "Remove", () => send("DELETE", "/groups", undefined, { topic, group: name }));
  if (!isDone) return;
  toast(`Group ${name} was removed.`, "good");
  go(address("groups"));
}
