import { h, replace } from "../dom.js";
import { count } from "../format.js";
const ROW_PX = 48;
const MARGIN_ROWS = 10;
const MAX_ROWS = 200;
export class VirtualTable {
    options;
    element;
    #body;
    #head;
    #summary;
    #shown = new Map();
    #sort;
    #order;
    #total = -1;
    #loading = 0;
    #onScroll = () => {
        if (!this.#covers())
            void this.refresh();
    };
    #first = 0;
    #last = 0;
    constructor(options) {
        this.options = options;
        this.#sort = options.sort;
        this.#order = options.order;
        this.#summary = h("p", { class: "muted table-summary", role: "status" });
        this.#head = h("div", { class: "vrow vhead", role: "row" });
        this.#body = h("div", { class: "vbody", role: "rowgroup" });
        this.element = h("div", { class: "vtable-frame" }, this.#summary, h("div", { class: "vtable", role: "table", "aria-label": options.label }, h("div", { role: "rowgroup" }, this.#head), this.#body));
        this.#drawHead();
        addEventListener("scroll", this.#onScroll, { passive: true });
        addEventListener("resize", this.#onScroll, { passive: true });
    }
    dispose() {
        removeEventListener("scroll", this.#onScroll);
        removeEventListener("resize", this.#onScroll);
    }
    async refresh() {
        const turn = (this.#loading += 1);
        const { first, last } = this.#inSight();
        const offset = Math.max(0, first - MARGIN_ROWS);
        const limit = Math.min(MAX_ROWS, last - offset + MARGIN_ROWS);
        const page = await this.options.load(offset, limit, this.#sort, this.#order);
        if (turn !== this.#loading)
            return;
        this.#show(page);
    }
    #show({ total, offset, rows }) {
        this.#total = total;
        this.#first = offset;
        this.#last = offset + rows.length;
        this.element.classList.toggle("is-empty", total === 0);
        replace(this.#summary, total === 0 ? "" : `${count(total)} in all`);
        this.#body.parentElement?.setAttribute("aria-rowcount", String(total + 1));
        if (total === 0) {
            this.#shown.clear();
            this.#body.style.height = "auto";
            if (!this.#body.querySelector(".notice"))
                replace(this.#body, h("div", { role: "row" }, h("div", { role: "cell" }, this.options.empty())));
            return;
        }
        this.#body.style.height = `${total * ROW_PX}px`;
        const wanted = new Set();
        rows.forEach((row, at) => {
            const key = this.options.key(row);
            wanted.add(key);
            this.#place(key, row, offset + at);
        });
        for (const [key, { element }] of this.#shown) {
            if (wanted.has(key))
                continue;
            element.remove();
            this.#shown.delete(key);
        }
        for (const child of [...this.#body.children])
            if (!child.classList.contains("vrow"))
                child.remove();
    }
    #place(key, row, index) {
        const signature = JSON.stringify(row);
        let shown = this.#shown.get(key);
        if (!shown) {
            const cells = this.options.columns.map((column) => h("div", { role: "cell", class: classOf(column), "data-label": column.label }, column.cell(row)));
            shown = { element: h("div", { class: "vrow", role: "row" }, cells), signature };
            this.#shown.set(key, shown);
            this.#body.append(shown.element);
        }
        else if (shown.signature !== signature) {
            shown.signature = signature;
            const { element } = shown;
            this.options.columns.forEach((column, at) => {
                const cell = element.children[at];
                if (cell && at > 0)
                    replace(cell, column.cell(row));
            });
        }
        shown.element.style.transform = `translateY(${index * ROW_PX}px)`;
        shown.element.setAttribute("aria-rowindex", String(index + 2));
    }
    #drawHead() {
        replace(this.#head, this.options.columns.map((column) => {
            const isSorted = column.sort === this.#sort;
            const sorted = isSorted ? (this.#order === "asc" ? "ascending" : "descending") : "none";
            const label = column.sort
                ? h("button", { type: "button", class: "sort", onclick: () => this.#sortBy(column) }, column.label, h("span", { class: "sort-mark", "aria-hidden": "true" }, isSorted ? (this.#order === "asc" ? "▲" : "▼") : ""))
                : column.label;
            return h("div", { role: "columnheader", class: classOf(column), "aria-sort": column.sort ? sorted : null }, label);
        }));
    }
    #sortBy(column) {
        const { sort } = column;
        if (!sort)
            return;
        const first = column.isNumber ? "desc" : "asc";
        this.#order = this.#sort === sort ? (this.#order === "asc" ? "desc" : "asc") : first;
        this.#sort = sort;
        this.#drawHead();
        this.options.onSort?.(sort, this.#order);
        const at = this.options.columns.indexOf(column);
        this.#head.children[at]?.querySelector("button")?.focus();
        void this.refresh();
    }
    #inSight() {
        const top = this.#body.getBoundingClientRect().top;
        const first = Math.max(0, Math.floor(-top / ROW_PX));
        const rows = Math.ceil(innerHeight / ROW_PX);
        const last = this.#total < 0 ? first + rows : Math.min(this.#total, first + rows + 1);
        return { first: Math.min(first, Math.max(0, last - 1)), last: Math.max(last, first + 1) };
    }
    #covers() {
        const { first, last } = this.#inSight();
        return this.#total >= 0 && first >= this.#first && last <= this.#last;
    }
}
function classOf({ isNumber, isWide }) {
    return ["vcell", isNumber ? "is-number" : "", isWide ? "is-wide" : ""].filter((name) => name !== "").join(" ");
}
