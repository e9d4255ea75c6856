/** Where in the page one is: the part of the address behind `#`, so that it works at `/` and at `/ui` alike. */

export interface Route {
  /** The first part: `topics`, `groups` and so on; `overview` where there is none. */
  view: string;
  /** Names behind it, decoded. */
  names: string[];
  query: URLSearchParams;
}

export function currentRoute(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter((part) => part !== "").map(decoded);
  return { view: parts[0] ?? "overview", names: parts.slice(1), query: new URLSearchParams(query) };
}

/** The address of a view, for links. */
export function address(view: string, names: readonly string[] = [], query: Record<string, string | number | undefined> = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
  const text = parameters.toString();
  return `#/${[view, ...names].map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(to: string): void {
  location.hash = to;
}

/** Changes parameters of the address without a new entry in the history and without leaving the view. */
export function remember(changes: Record<string, string | number | undefined>): void {
  const route = currentRoute();
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") route.query.delete(name);
    else route.query.set(name, String(value));
  }
  history.replaceState(null, "", address(route.view, route.names, Object.fromEntries(route.query)));
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
