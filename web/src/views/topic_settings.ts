/** How a topic is kept, and forgetting or removing it. */

import { get, segment, send } from "../api.js";
import { h, replace } from "../dom.js";
import type { TopicConfig, TopicInfo } from "../model.js";
import { confirmDialog, openDialog } from "../parts/dialog.js";
import { button, checkbox, field, guard, input, select } from "../parts/fields.js";
import { errorNotice, loading } from "../parts/notice.js";
import { toast } from "../parts/toast.js";
import { access } from "../rights.js";
import { address, go } from "../router.js";
import type { Tab } from "./topic.js";

export function settings(topic: string): Tab {
  const element = h("div", {}, loading());
  void show(topic, element).catch((error: unknown) => replace(element, errorNotice(error)));
  return { element };
}

async function show(topic: string, element: HTMLElement): Promise<void> {
  const [{ config }, { admin }] = await Promise.all([get<TopicInfo>(`/topics/${segment(topic)}`), access(topic)]);
  const durability = select([["fsync", "fsync: answered when it is on disk"], ["os", "os: answered when it is written, for telemetry"]], config.durability);
  const retention = input({ value: config.retention ?? "", placeholder: "forever", pattern: "[0-9]+(ms|s|m|h|d|w)?" });
  const maxEvents = input({ type: "number", min: 1, value: config.max_events ?? "", placeholder: "no limit" });
  const maxBytes = input({ type: "number", min: 1, value: config.max_bytes ?? "", placeholder: "no limit" });
  const compaction = checkbox("Compaction: keep at least the latest event of each key", config.compaction);
  const snapshotTopic = input({ value: config.snapshot_topic ?? "", placeholder: "none" });
  const snapshotInterval = input({ value: config.snapshot_interval ?? "", placeholder: "30s" });
  const submit = guard(h("button", { type: "submit", class: "button button-primary" }, "Save"), admin, "change this topic");
  const outcome = h("div", { role: "status" });
  const form = h("form", { class: "form" }, field("Durability", durability), field("Retention", retention, "Events older than this are forgotten: 30s, 12h, 3d."),
    field("Most events", maxEvents), field("Most bytes", maxBytes), compaction.element, field("Snapshot topic", snapshotTopic, "Where the latest state of each key is published from time to time."),
    field("Snapshot interval", snapshotInterval), h("div", {}, submit), outcome);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = (control: HTMLInputElement): string | undefined => control.value.trim() || undefined;
    const number = (control: HTMLInputElement): number | undefined => (control.value ? Number(control.value) : undefined);
    const wanted: Partial<Record<keyof TopicConfig, unknown>> = {
      durability: durability.value, retention: text(retention), max_events: number(maxEvents), max_bytes: number(maxBytes), compaction: compaction.input.checked,
      snapshot_topic: text(snapshotTopic), snapshot_interval: text(snapshotInterval), partitions: config.partitions,
    };
    void send("PUT", `/topics/${segment(topic)}`, wanted).then(() => {
      replace(outcome);
      toast("The settings were saved.", "good");
    }).catch((error: unknown) => replace(outcome, errorNotice(error)));
  });
  const purge = guard(button("Purge…", () => void confirmDialog("Purge the topic?", `All events of ${topic} are forgotten. Positions go on, groups stay.`, "Purge", async () => {
    await send("POST", `/topics/${segment(topic)}/purge`);
    toast("The topic was purged.", "good");
  }), { class: "button button-danger" }), admin, "purge this topic");
  const remove = guard(button("Delete…", () => void removeTopic(topic), { class: "button button-danger" }), admin, "delete this topic");
  replace(element, form, h("section", { class: "danger" }, h("h2", {}, "Danger"), h("p", {}, "Neither can be undone."), h("div", { class: "actions" }, purge, remove)));
}

async function removeTopic(topic: string): Promise<void> {
  const name = input({ required: true });
  const isDone = await openDialog({
    title: "Delete the topic?", action: "Delete", isDangerous: true,
    body: [h("p", {}, "The topic, its events and its groups are removed."), field("Type its name to go on", name)],
    run: async () => {
      if (name.value !== topic) throw new Error("This is not the name of the topic.");
      await send("DELETE", `/topics/${segment(topic)}`);
    },
  });
  if (!isDone) return;
  toast(`Topic ${topic.slice(0, 60)} was deleted.`, "good");
  go(address("topics"));
}
