import { h, replace } from "../dom.js";
import { messageOf } from "./notice.js";
export function openDialog(options) {
    return new Promise((resolve) => {
        let isDone = false;
        const problem = h("div", { class: "dialog-error", role: "alert" });
        const action = h("button", { type: "submit", class: `button ${options.isDangerous ? "button-danger" : "button-primary"}` }, options.action);
        const cancel = h("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Cancel");
        const form = h("form", { method: "dialog" }, h("h2", {}, options.title), h("div", { class: "dialog-body" }, ...options.body), problem, h("div", { class: "dialog-actions" }, !options.isRequired && cancel, action));
        const dialog = h("dialog", { "aria-label": options.title }, form);
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            replace(problem);
            action.disabled = true;
            void Promise.resolve()
                .then(options.run)
                .then(() => {
                isDone = true;
                dialog.close();
            })
                .catch((error) => replace(problem, messageOf(error)))
                .finally(() => (action.disabled = false));
        });
        dialog.addEventListener("cancel", (event) => {
            if (options.isRequired)
                event.preventDefault();
        });
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(isDone);
        });
        document.body.append(dialog);
        dialog.showModal();
    });
}
export function confirmDialog(title, text, action, run) {
    return openDialog({ title, body: [h("p", {}, text)], action, isDangerous: true, run });
}
