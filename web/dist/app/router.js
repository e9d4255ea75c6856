export function currentRoute() {
    const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
    const parts = path.split("/").filter((part) => part !== "").map(decoded);
    return { view: parts[0] ?? "overview", names: parts.slice(1), query: new URLSearchParams(query) };
}
export function address(view, names = [], query = {}) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
        if (value !== undefined)
            parameters.set(name, String(value));
    const text = parameters.toString();
    return `#/${[view, ...names].map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}
export function go(to) {
    location.hash = to;
}
export function remember(changes) {
    const route = currentRoute();
    for (const [name, value] of Object.entries(changes)) {
        if (value === undefined || value === "")
            route.query.delete(name);
        else
            route.query.set(name, String(value));
    }
    history.replaceState(null, "", address(route.view, route.names, Object.fromEntries(route.query)));
}
function decoded(part) {
    try {
        return decodeURIComponent(part);
    }
    catch {
        return part;
    }
}
