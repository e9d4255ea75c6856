// Written by `prombus codegen --lang ts`. Do not edit: change the schemas and run it again.

/** An order. * / It has lines. */
export type OrderCreated = {
  address?: OrderCreatedAddress;
  extra?: unknown;
  id: string;
  labels?: { [name: string]: string };
  lineItems: {
    count: number;
    sku: string;
  }[];
  /** What the customer wrote. */
  note: string | null;
  origin: unknown;
  type: "web" | "in-store" | "self";
};

/** `/$defs/address` of `order.created`. */
export type OrderCreatedAddress = {
  geo?: [number, number];
  zip: string;
  [name: string]: unknown;
};

/** The payload of `tree`. */
export type Tree = {
  children?: Tree[];
  parent?: Tree | null;
  value: number;
};

/** The payload of `nested`. */
export type Nested = Nested[];

/** The payload of `shape`. */
export type Shape = {
  kind: "circle";
  r: number;
} | {
  kind: "square";
  side: number;
};

/** The payload of `option`. */
export type Option = string | null;

/** The payload of `flag`. */
export type Flag = boolean;

/** The payload of `anything`. */
export type Anything = unknown;

/** The payloads of all topics, by their names. */
export interface Topics {
  "order.created": OrderCreated;
  tree: Tree;
  nested: Nested;
  shape: Shape;
  option: Option;
  flag: Flag;
  anything: Anything;
}
