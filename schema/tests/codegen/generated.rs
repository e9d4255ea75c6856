//! What `prombus codegen --lang rust` writes for the schemas of the test beside it.

// Written by `prombus codegen --lang rust`. Do not edit: change the schemas and run it again.

/// The name of the topic.
pub const ORDER_CREATED: &str = "order.created";

/// A part of the payload of `order.created`.
#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderCreatedLineItemsItem {
    /// `count`.
    pub count: i64,
    /// `sku`.
    pub sku: String,
}

/// A part of the payload of `order.created`.
#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
pub enum OrderCreatedType {
    /// `web`.
    #[serde(rename = "web")]
    Web,
    /// `in-store`.
    #[serde(rename = "in-store")]
    InStore,
    /// `self`.
    #[serde(rename = "self")]
    Self2,
}

/// An order. */ It has lines.
#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderCreated {
    /// `address`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<OrderCreatedAddress>,
    /// `extra`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<::serde_json::Value>,
    /// `id`.
    pub id: String,
    /// `labels`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<::std::collections::BTreeMap<String, String>>,
    /// `lineItems`.
    #[serde(rename = "lineItems")]
    pub line_items: Vec<OrderCreatedLineItemsItem>,
    /// What the customer wrote.
    pub note: Option<String>,
    /// `origin`.
    pub origin: ::serde_json::Value,
    /// `type`.
    #[serde(rename = "type")]
    pub type_: OrderCreatedType,
}

/// `/$defs/address` of `order.created`.
#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
pub struct OrderCreatedAddress {
    /// `geo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geo: Option<::serde_json::Value>,
    /// `zip`.
    pub zip: String,
}

/// The name of the topic.
pub const TREE: &str = "tree";

/// The payload of `tree`.
#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// `children`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<Tree>>,
    /// `parent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<Tree>>,
    /// `value`.
    pub value: f64,
}

/// The name of the topic.
pub const NESTED: &str = "nested";

/// The payload of `nested`.
#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
#[serde(transparent)]
pub struct Nested(pub Vec<Nested>);

/// The name of the topic.
pub const SHAPE: &str = "shape";

/// A part of the payload of `shape`.
#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
pub enum ShapeVariant1Kind {
    /// `circle`.
    #[serde(rename = "circle")]
    Circle,
}

/// A part of the payload of `shape`.
#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeVariant1 {
    /// `kind`.
    pub kind: ShapeVariant1Kind,
    /// `r`.
    pub r: f64,
}

/// A part of the payload of `shape`.
#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
pub enum ShapeVariant2Kind {
    /// `square`.
    #[serde(rename = "square")]
    Square,
}

/// A part of the payload of `shape`.
#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeVariant2 {
    /// `kind`.
    pub kind: ShapeVariant2Kind,
    /// `side`.
    pub side: f64,
}

/// The payload of `shape`.
#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
#[serde(untagged)]
pub enum Shape {
    /// Branch 1.
    Variant1(ShapeVariant1),
    /// Branch 2.
    Variant2(ShapeVariant2),
}

/// The name of the topic.
pub const OPTION: &str = "option";

/// The payload of `option`.
pub type Option2 = Option<String>;

/// The name of the topic.
pub const FLAG: &str = "flag";

/// The payload of `flag`.
pub type Flag = bool;

/// The name of the topic.
pub const ANYTHING: &str = "anything";

/// The payload of `anything`.
pub type Anything = ::serde_json::Value;
