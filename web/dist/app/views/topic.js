import { ApiError, get, segment } from "../api.js";
import { h, replace, setText } from "../dom.js";
import * as format from "../format.js";
import { errorNotice } from "../parts/notice.js";
import { address } from "../router.js";
const TABS = [
    { name: "browse", label: "Browse", load: async () => (await import("./topic_browse.js")).browse },
    { name: "tail", label: "Live tail", load: async () => (await import("./topic_tail.js")).tail },
    { name: "keys", label: "Keys", load: async () => (await import("./topic_keys.js")).keys },
    { name: "groups", label: "Groups", load: async () => (await import("./topic_groups.js")).topicGroups },
    { name: "publish", label: "Publish", load: async () => (await import("./topic_publish.js")).publish },
    { name: "export", label: "Export", load: async () => (await import("./topic_publish.js")).exportTab },
    { name: "settings", label: "Settings", load: async () => (await import("./topic_settings.js")).settings },
];
export function topic(route) {
    const name = route.names[0] ?? "";
    const chosen = TABS.find((tab) => tab.name === route.query.get("tab")) ?? TABS[0];
    const body = h("div", { class: "tab-body" });
    const facts = h("p", { class: "muted facts-line" });
    const links = TABS.map((tab) => h("li", {}, h("a", { href: address("topics", [name], { tab: tab.name }), "aria-current": tab === chosen ? "page" : null }, tab.label)));
    const tabs = h("nav", { class: "tabs", "aria-label": "Parts of the topic" }, h("ul", {}, links));
    const element = h("div", { class: "view" }, h("p", { class: "crumbs" }, h("a", { href: address("topics") }, "Topics"), " /"), h("h1", { class: "long-name" }, name), facts, tabs, body);
    requestAnimationFrame(() => {
        const current = tabs.querySelector("[aria-current]");
        if (current)
            tabs.scrollLeft = current.offsetLeft - tabs.offsetLeft - tabs.clientWidth / 2;
    });
    let tab;
    let isGone = false;
    void chosen.load().then((make) => {
        if (isGone)
            return;
        tab = make(name, route);
        replace(body, tab.element);
        return tab.refresh?.();
    }).catch((error) => {
        if (!(error instanceof ApiError))
            replace(body, errorNotice(error));
    });
    return {
        title: name,
        element,
        async refresh() {
            const info = await get(`/topics/${segment(name)}`);
            setText(facts, `${format.plural(info.events, "event")} · ${format.bytes(info.bytes)} · positions ${format.count(info.first_seq)} to ${format.count(info.tail_seq)} · ${info.config.durability}${info.config.compaction ? " · compacted" : ""}`);
            await tab?.refresh?.();
        },
        dispose() {
            isGone = true;
            tab?.dispose?.();
        },
    };
}
