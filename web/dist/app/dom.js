export function h(tag, attributes = {}, ...children) {
    return fill(document.createElement(tag), attributes, children);
}
export function svg(tag, attributes = {}, ...children) {
    return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}
export function replace(parent, ...children) {
    parent.replaceChildren(...nodes(children));
}
export function append(parent, ...children) {
    parent.append(...nodes(children));
}
export function setText(element, text) {
    if (element.textContent !== text)
        element.textContent = text;
}
function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (value === null || value === undefined || value === false)
            continue;
        if (typeof value === "function")
            element.addEventListener(name.slice(2), value);
        else if (name === "value" && "value" in element)
            element.value = String(value);
        else
            element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...nodes(children));
    return element;
}
function nodes(children) {
    return children.flatMap((child) => {
        if (child === null || child === undefined || child === false)
            return [];
        if (typeof child === "string")
            return [child];
        if (typeof child === "number")
            return [String(child)];
        if (child instanceof Node)
            return [child];
        return nodes(child);
    });
}
