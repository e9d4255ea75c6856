import { ApiError } from "./api.js";
import { messageOf } from "./parts/notice.js";
import { toast } from "./parts/toast.js";
import { Shell } from "./shell.js";
addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    const isTold = event.reason instanceof ApiError && (event.reason.code === "unreachable" || event.reason.status === 401);
    if (!isTold)
        toast(messageOf(event.reason), "bad");
});
new Shell([
    { view: "overview", label: "Overview", load: async () => (await import("./views/overview.js")).overview },
    { view: "topics", label: "Topics", load: async () => (await import("./views/topics.js")).topics },
    { view: "groups", label: "Groups", load: async () => (await import("./views/groups.js")).groups },
    { view: "dead-letters", label: "Dead letters", load: async () => (await import("./views/dead_letters.js")).deadLetters },
    { view: "processes", label: "Processes", load: async () => (await import("./views/processes.js")).processes },
    { view: "playground", label: "Playground", load: async () => (await import("./views/playground.js")).playground },
]).begin();
