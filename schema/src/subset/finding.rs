//! Where two schemas differ in a way that matters, and which rule says so.

use super::facts::Node;
use std::fmt;

/// The most findings that are reported of one comparison.
pub const MAX_FINDINGS: usize = 20;

/// Declares the rules once: variant, name and whether it is proven that something is lost.
macro_rules! rules {
    ($($variant:ident $name:literal $proven:literal $meaning:literal),+ $(,)?) => {
        /// The rule that a schema breaks. Names are stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Rule {
            $(#[doc = $meaning] $variant,)+
        }

        impl Rule {
            /// Its name in replies and documentation.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Whether something is lost for certain; else it only could not be proven that nothing is.
            pub fn is_proven(self) -> bool {
                match self { $(Self::$variant => $proven),+ }
            }
        }
    };
}

rules! {
    TypeNarrowed "type_narrowed" true "A type was allowed and is not any more.",
    ValueRemoved "value_removed" true "A value of `enum` or `const` was allowed and is not any more.",
    ValuesRestricted "values_restricted" true "`enum` or `const` restricts what was open.",
    RequiredAdded "required_added" true "A property became required.",
    PropertyAddedToOpenModel "property_added_to_open_model" true "A property was added with a schema, and could have any value before because additional properties were allowed.",
    AdditionalNarrowed "additional_properties_narrowed" true "Properties that are not named were allowed and are not, or not all, any more.",
    RangeNarrowed "range_narrowed" true "`minimum`, `maximum` or their exclusive forms became stricter.",
    MultipleNarrowed "multiple_of_narrowed" true "`multipleOf` became stricter.",
    LengthNarrowed "length_narrowed" true "`minLength` or `maxLength` became stricter.",
    SizeNarrowed "size_narrowed" true "`minItems`, `maxItems`, `minProperties` or `maxProperties` became stricter.",
    UniqueAdded "unique_items_added" true "`uniqueItems` was added.",
    Forbidden "forbidden" true "Nothing is accepted where something was.",
    PatternChanged "pattern_changed" false "A `pattern` was added or changed; patterns are only compared as texts.",
    NamesRestricted "property_names_changed" false "`propertyNames` was added or changed.",
    DependencyAdded "dependency_changed" false "`dependentRequired` or `dependentSchemas` was added or changed.",
    ContainsChanged "contains_changed" false "`contains` was added or changed.",
    NoBranch "no_branch_accepts" false "No single branch of `anyOf` or `oneOf` accepts everything that was allowed.",
    BranchesOverlap "branches_overlap" false "Several branches of `oneOf` may accept the same value, and then none does.",
    NotExcluded "not_excluded" false "What `not` excludes may have been allowed.",
    UnknownKeyword "unknown_keyword" false "A keyword is not known, or cannot be compared.",
    TooComplex "too_complex" false "The schemas are too complex to compare.",
    Unproven "unproven" false "No proof was found.",
}

/// A place where something that was allowed is not any more, or may not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// JSON Pointer to the keyword, in the schema that accepts less.
    pub path: String,
    /// The rule.
    pub rule: Rule,
    /// What is lost, in words.
    pub detail: String,
}

impl Finding {
    pub(super) fn new(
        node: &Node<'_>,
        keyword: &str,
        rule: Rule,
        detail: impl Into<String>,
    ) -> Self {
        let path = match keyword {
            "" => node.pointer.to_string(),
            keyword => format!("{}/{keyword}", node.pointer),
        };
        let detail = detail.into();
        Self { path, rule, detail }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "/"
        } else {
            &self.path
        };
        write!(f, "{path}: {} ({})", self.detail, self.rule.as_str())
    }
}
