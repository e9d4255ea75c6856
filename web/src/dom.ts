/** Elements from code. Whatever comes from the server becomes text, never markup. */

export type Child = Node | string | number | null | undefined | false | readonly Child[];

type Listener = (event: never) => void;

/** Attributes; those that begin with `on` are listeners, `class` and `data-…` are as in markup. */
export type Attributes = Record<string, string | number | boolean | null | undefined | Listener>;

/** An HTML element. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Puts these in place of what an element has. */
export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...nodes(children));
}

/** Adds children at the end. */
export function append(parent: Element, ...children: Child[]): void {
  parent.append(...nodes(children));
}

/** Changes the text only where it differs, so that a selection survives an update. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

function fill<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (name === "value" && "value" in element) (element as unknown as { value: string }).value = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children: readonly Child[]): (Node | string)[] {
  return children.flatMap((child): (Node | string)[] => {
    if (child === null || child === undefined || child === false) return [];
    if (typeof child === "string") return [child];
    if (typeof child === "number") return [String(child)];
    if (child instanceof Node) return [child];
    return nodes(child);
  });
}
