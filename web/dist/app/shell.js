import { ApiError, currentToken, serverStatus, useToken, whenRejected } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { clockSkewMs, duration } from "./format.js";
import { onConnection, onTick, restart, start } from "./live.js";
import { checkbox, field, input } from "./parts/fields.js";
import { openDialog } from "./parts/dialog.js";
import { errorNotice } from "./parts/notice.js";
import { toast, toastRegion } from "./parts/toast.js";
import { address, currentRoute } from "./router.js";
const MAX_SKEW_MS = 5_000;
const THEMES = ["auto", "light", "dark"];
export class Shell {
    entries;
    #main = h("main", { id: "main", tabindex: "-1" });
    #banner = h("div", { class: "banner", role: "status", hidden: true });
    #state = h("span", { class: "state" });
    #skew = h("span", { class: "muted" });
    #who = h("span", { class: "who" });
    #version = h("span", { class: "muted" });
    #links = new Map();
    #page;
    #turn = 0;
    #isRefreshing = false;
    #isAsking = false;
    #wasLost = false;
    constructor(entries) {
        this.entries = entries;
    }
    begin() {
        this.#build();
        whenRejected((error) => void this.#askToken(error));
        addEventListener("hashchange", () => void this.show());
        onConnection((connection) => this.#onConnection(connection));
        onTick(() => void this.#refresh());
        void this.#begin();
    }
    async show() {
        const turn = (this.#turn += 1);
        const route = currentRoute();
        const entry = this.entries.find(({ view }) => view === route.view) ?? this.entries[0];
        if (!entry)
            return;
        for (const [view, link] of this.#links)
            view === entry.view ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
        const link = this.#links.get(entry.view);
        const nav = link?.closest("nav");
        if (link && nav)
            nav.scrollLeft = link.offsetLeft - nav.offsetLeft - nav.clientWidth / 2;
        try {
            const view = await entry.load();
            if (turn !== this.#turn)
                return;
            this.#page?.dispose?.();
            this.#page = view(route);
            document.title = `${this.#page.title} · prombus`;
            replace(this.#main, this.#page.element);
            scrollTo(0, 0);
            if (turn > 1 && document.activeElement === document.body)
                this.#main.focus({ preventScroll: true });
            await this.#refresh();
        }
        catch (error) {
            if (turn === this.#turn)
                replace(this.#main, errorNotice(error, () => void this.show()));
        }
    }
    async #begin() {
        await this.#loadStatus();
        start();
        await this.show();
    }
    async #loadStatus() {
        try {
            this.#showStatus(await serverStatus());
        }
        catch (error) {
            if (!(error instanceof ApiError))
                throw error;
        }
    }
    #showStatus(status) {
        setText(this.#version, `prombus ${status.version}`);
        const signOut = h("button", { type: "button", class: "button button-quiet", onclick: () => void this.#signOut() }, "Change token");
        replace(this.#who, status.access.subject ? `${status.access.subject} ` : "", status.requires_token && signOut);
        this.#showSkew();
    }
    #showSkew() {
        const skewMs = clockSkewMs();
        setText(this.#skew, Math.abs(skewMs) > MAX_SKEW_MS ? `This computer's clock is ${duration(Math.abs(skewMs))} ${skewMs > 0 ? "behind" : "ahead of"} the server's; ages are by the server's.` : "");
    }
    async #refresh() {
        if (this.#isRefreshing || !this.#page?.refresh)
            return;
        this.#isRefreshing = true;
        const page = this.#page;
        try {
            await page.refresh?.();
            this.#showSkew();
            this.#main.querySelector(":scope > .notice-error")?.remove();
        }
        catch (error) {
            const isPassing = error instanceof ApiError && (error.code === "unreachable" || error.status === 401);
            if (page === this.#page && !isPassing) {
                this.#main.querySelector(":scope > .notice-error")?.remove();
                this.#main.prepend(errorNotice(error));
            }
        }
        finally {
            this.#isRefreshing = false;
            if (page !== this.#page)
                void this.#refresh();
        }
    }
    #onConnection(connection) {
        const words = { connecting: "Connecting", connected: "Live", lost: "Not connected", hidden: "Paused", rejected: "No token" };
        setText(this.#state, words[connection]);
        this.#state.dataset["state"] = connection;
        this.#banner.hidden = connection !== "lost";
        setText(this.#banner, connection === "lost" ? "The server does not answer. It may be restarting; the page goes on by itself when it is back." : "");
        if (connection === "lost")
            this.#wasLost = true;
        if (connection === "connected" && this.#wasLost) {
            this.#wasLost = false;
            toast("Connected again.", "good");
            void this.#loadStatus();
        }
    }
    async #signOut() {
        useToken(undefined, false);
        await this.#askToken();
    }
    async #askToken(why) {
        if (this.#isAsking)
            return;
        this.#isAsking = true;
        const token = input({ type: "password", autocomplete: "current-password", required: true });
        const keep = checkbox("Keep it for this tab, also when I reload");
        const reason = why?.code === "token_expired" ? "The token has expired. The page goes on where it was." : why && currentToken() ? `The server did not take the token: ${why.message}.` : "This server asks for a token. It stays in this tab.";
        await openDialog({
            title: "Token", action: "Continue", isRequired: true,
            body: [h("p", {}, reason), field("Token", token), keep.element],
            run: async () => {
                useToken(token.value.trim(), keep.input.checked);
                this.#showStatus(await serverStatus());
            },
        });
        this.#isAsking = false;
        restart();
        await this.show();
    }
    #build() {
        const links = this.entries.map(({ view, label }) => {
            const link = h("a", { href: address(view) }, label);
            this.#links.set(view, link);
            return h("li", {}, link);
        });
        const theme = h("button", { type: "button", class: "button button-quiet" });
        const applyTheme = (name) => {
            if (name === "auto")
                delete document.documentElement.dataset["theme"];
            else
                document.documentElement.dataset["theme"] = name;
            setText(theme, `Theme: ${name}`);
        };
        let chosen = localStorage.getItem("prombus.theme") ?? "auto";
        applyTheme(chosen);
        theme.addEventListener("click", () => {
            chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length] ?? "auto";
            localStorage.setItem("prombus.theme", chosen);
            applyTheme(chosen);
        });
        const skip = h("a", { class: "skip", href: "#main" }, "Skip to content");
        skip.addEventListener("click", (event) => {
            event.preventDefault();
            this.#main.focus();
        });
        replace(document.body, skip, h("header", { class: "top" }, h("a", { class: "brand", href: address("overview") }, h("span", { class: "brand-mark", "aria-hidden": "true" }), "prombus"), h("nav", { "aria-label": "Views" }, h("ul", {}, links)), h("div", { class: "top-end" }, this.#who, this.#state)), this.#banner, this.#main, h("footer", {}, this.#version, this.#skew, theme), toastRegion());
        this.#onConnection("connecting");
    }
}
