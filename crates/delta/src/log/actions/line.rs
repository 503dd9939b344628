//! The actions about files as they stand in a line, borrowed from it.
use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Text that borrows from the line unless it holds escapes.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AddLine<'a> {
    #[serde(borrow)]
    pub(super) path: Text<'a>,
    #[serde(borrow, default)]
    pub(super) partition_values: Option<Values<'a>>,
    pub(super) size: i64,
    #[serde(default)]
    pub(super) modification_time: Option<i64>,
    #[serde(borrow, default)]
    pub(super) stats: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) deletion_vector: Option<VectorLine<'a>>,
    #[serde(default)]
    pub(super) base_row_id: Option<i64>,
    #[serde(default)]
    pub(super) default_row_commit_version: Option<i64>,
    #[serde(borrow, default)]
    pub(super) tags: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) clustering_provider: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoveLine<'a> {
    #[serde(borrow)]
    pub(super) path: Text<'a>,
    #[serde(default)]
    pub(super) deletion_timestamp: Option<i64>,
    #[serde(default)]
    pub(super) size: Option<i64>,
    #[serde(borrow, default)]
    pub(super) deletion_vector: Option<VectorLine<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VectorLine<'a> {
    #[serde(borrow)]
    pub(super) storage_type: Text<'a>,
    #[serde(borrow)]
    pub(super) path_or_inline_dv: Text<'a>,
    #[serde(default)]
    pub(super) offset: Option<i32>,
    pub(super) size_in_bytes: i32,
    pub(super) cardinality: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InfoLine {
    // Free-form: a value of another type is as if absent.
    #[serde(default)]
    pub(super) in_commit_timestamp: Option<serde_json::Value>,
}

/// The pairs of `partitionValues` in their order.
pub(super) struct Values<'a>(pub(super) Vec<(Text<'a>, Option<Text<'a>>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairVisitor;
        impl<'de> Visitor<'de> for PairVisitor {
            type Value = Values<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Values(pairs))
            }
        }
        deserializer.deserialize_map(PairVisitor)
    }
}
