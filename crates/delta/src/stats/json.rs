//! Statistics as JSON text, read in one pass.
//!
//! Values are looked at as raw text first: a decimal keeps all its digits, and a value of the wrong type spoils itself
//! only. Text that is not JSON spoils the file's statistics whole.
use arrow_schema::DataType;
use lakebed_core::{expr::Scalar, file::FileStats};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Member, Node, Raw, RawColumn, StatsPlan};
use crate::partition::text as spelled;

impl StatsPlan {
    /// The statistics of one file; empty where the text is no JSON object.
    pub(crate) fn read(&self, text: &str) -> FileStats {
        self.raw(text).map_or_else(FileStats::default, |it| self.judge(it))
    }

    /// What the statistics of one file say that cannot be.
    pub(crate) fn faults(&self, text: &str) -> Vec<String> {
        self.raw(text).map(|it| self.contradictions(it)).unwrap_or_default()
    }

    fn raw(&self, text: &str) -> Option<Raw> {
        let mut raw = Raw::of(self);
        let mut parser = serde_json::Deserializer::from_str(text);
        let read = (File { plan: self, raw: &mut raw }).deserialize(&mut parser).and_then(|()| parser.end());
        read.ok().map(|()| raw)
    }
}

/// `numRecords` alone, without looking at the rest where it comes first, as writers put it.
///
/// `text` is the statistics' JSON, or a JSON string literal of it, as it stands in a commit.
pub(crate) fn num_records(text: &str) -> Option<u64> {
    for start in ["{\"numRecords\":", "\"{\\\"numRecords\\\":"] {
        if let Some(rest) = text.strip_prefix(start) {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            // Anything but a plain number takes the long way.
            if digits > 0 && matches!(rest.as_bytes().get(digits), Some(b',' | b'}')) {
                return rest[..digits].parse().ok();
            }
        }
    }
    if text.starts_with('"') {
        let inner = serde_json::from_str::<String>(text).ok()?;
        return parse_num_records(&inner);
    }
    parse_num_records(text)
}

fn parse_num_records(text: &str) -> Option<u64> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Rows {
        num_records: Option<u64>,
    }
    serde_json::from_str::<Rows>(text).ok()?.num_records
}

/// Which of the three groups of values is being read.
#[derive(Debug, Clone, Copy)]
enum Group {
    Min,
    Max,
    Nulls,
}

struct File<'a> {
    plan: &'a StatsPlan,
    raw: &'a mut Raw,
}

impl<'de> DeserializeSeed<'de> for File<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for File<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("statistics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let group = match &*key {
                "numRecords" => {
                    self.raw.rows = integer(map.next_value::<&RawValue>()?.get());
                    continue;
                }
                "tightBounds" => {
                    self.raw.tight_bounds = spelled::boolean(map.next_value::<&RawValue>()?.get());
                    continue;
                }
                "minValues" => Group::Min,
                "maxValues" => Group::Max,
                "nullCount" => Group::Nulls,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let group = Values { plan: self.plan, node: &self.plan.root, group, into: &mut self.raw.leaves };
            map.next_value_seed(group)?;
        }
        Ok(())
    }
}

/// The members of one struct in one group.
struct Values<'a> {
    plan: &'a StatsPlan,
    node: &'a Node,
    group: Group,
    into: &'a mut [RawColumn],
}

impl<'de> DeserializeSeed<'de> for Values<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // Not an object: the group says nothing, but the text goes on.
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Values<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("values by column")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match self.node.get(&name) {
                None => drop(map.next_value::<IgnoredAny>()?),
                Some(Member::Struct(node)) => {
                    map.next_value_seed(Values { plan: self.plan, node, group: self.group, into: &mut *self.into })?;
                }
                Some(Member::Leaf(index)) => {
                    let text = map.next_value::<&RawValue>()?.get();
                    let (leaf, into) = (&self.plan.leaves[*index], &mut self.into[*index]);
                    match self.group {
                        Group::Min => into.min = scalar(text, &leaf.kind),
                        Group::Max => into.max = scalar(text, &leaf.kind),
                        Group::Nulls => into.nulls = integer(text),
                    }
                }
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// A value from its JSON text; `None` if it is no value of the column's type.
fn scalar(text: &str, kind: &DataType) -> Option<Scalar> {
    match kind {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => integer(text).map(Scalar::Int),
        DataType::Float32 => unquoted(text)?.parse().ok().map(Scalar::Float),
        DataType::Float64 => unquoted(text)?.parse().ok().map(Scalar::Double),
        DataType::Decimal128(precision, scale) => {
            spelled::decimal(&unquoted(text)?, *precision, *scale).map(|it| Scalar::Decimal(it, *scale))
        }
        DataType::Boolean => spelled::boolean(text).map(Scalar::Boolean),
        DataType::Utf8 => string(text).map(|it| Scalar::Utf8(it.into_owned())),
        DataType::Date32 => spelled::date(&string(text)?).map(Scalar::Date),
        DataType::Timestamp(_, Some(_)) => spelled::timestamp_with_zone(&string(text)?).map(Scalar::Timestamp),
        DataType::Timestamp(_, None) => spelled::timestamp_without_zone(&string(text)?).map(Scalar::Timestamp),
        _ => None,
    }
}

/// The content of a string literal; `None` for anything else.
fn string(text: &str) -> Option<std::borrow::Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(text).ok().map(std::borrow::Cow::Owned) } else { Some(inner.into()) }
}

/// A number, or a string literal of one.
fn unquoted(text: &str) -> Option<std::borrow::Cow<'_, str>> {
    if text.starts_with('"') { string(text) } else { Some(text.into()) }
}
