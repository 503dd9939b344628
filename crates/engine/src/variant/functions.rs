//! SQL functions over variants: `variant_get(v, path [, type])`, `variant_to_json(v)`, `to_json(v)`.
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_cast::CastOptions;
use arrow_schema::{DataType, Field, FieldRef, TimeUnit, extension::EXTENSION_TYPE_NAME_KEY};
use datafusion::{
    common::plan_err,
    error::{DataFusionError, Result},
    logical_expr::{
        ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
    scalar::ScalarValue,
};
use parquet_variant::{VariantPath, VariantPathElement};
use parquet_variant_compute::{GetOptions, VariantArray, variant_get};

use super::{NAMES, fenced, is_variant, plain, variant_json_array};

/// The functions, for registration in a session.
pub fn functions() -> Vec<ScalarUDF> {
    vec![
        ScalarUDF::from(VariantGet { signature: Signature::user_defined(Volatility::Immutable) }),
        ScalarUDF::from(ToJson::new("variant_to_json")),
        ScalarUDF::from(ToJson::new("to_json")),
    ]
}

/// `variant_get(v, '$.a.b[0]')` is a variant; with a type it is that type, null where the value is none.
#[derive(Debug, PartialEq, Eq, Hash)]
struct VariantGet {
    signature: Signature,
}

impl ScalarUDFImpl for VariantGet {
    fn name(&self) -> &str {
        "variant_get"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types.len() {
            2 | 3 => Ok([&types[..1], &vec![DataType::Utf8; types.len() - 1]].concat()),
            count => plan_err!("variant_get takes a variant, a path and perhaps a type; {count} arguments were given"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        plan_err!("the type of variant_get depends on its arguments")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        variant_argument(self.name(), args.arg_fields)?;
        let kind = match args.scalar_arguments.get(2) {
            None => None,
            Some(Some(name)) => Some(sql_type(text(name)?)?),
            Some(None) => return plan_err!("the type that variant_get returns must be a constant"),
        };
        Ok(Arc::new(match kind {
            Some(kind) => Field::new(self.name(), kind, true),
            None => {
                let marked = [(EXTENSION_TYPE_NAME_KEY.to_owned(), NAMES[0].to_owned())];
                let kind = args.arg_fields[0].data_type().clone();
                Field::new(self.name(), kind, true).with_metadata(marked.into())
            }
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [variant, path, ..] = args.args.as_slice() else {
            return plan_err!("variant_get takes a variant and a path");
        };
        let ColumnarValue::Scalar(path) = path else {
            return plan_err!("the path that variant_get follows must be a constant");
        };
        let path = parse_path(text(path)?)?;
        let variant = variant.to_array(rows)?;
        let typed = !args.return_field.data_type().is_nested() || !is_variant(&args.return_field);
        let wanted = typed.then(|| Arc::clone(&args.return_field));
        let options = GetOptions { path, as_type: wanted, cast_options: CastOptions::default() };
        let found = fenced(|| {
            let parts: ArrayRef = Arc::new(VariantArray::try_new(variant.as_ref())?.into_inner());
            variant_get(&parts, options)
        })?;
        match (typed, args.return_field.data_type()) {
            (false, DataType::Struct(fields)) => Ok(ColumnarValue::Array(plain(&found, fields)?)),
            _ => Ok(ColumnarValue::Array(found)),
        }
    }
}

/// A variant as JSON text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ToJson {
    name: &'static str,
    signature: Signature,
}

impl ToJson {
    fn new(name: &'static str) -> Self {
        Self { name, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for ToJson {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        variant_argument(self.name, args.arg_fields)?;
        Ok(Arc::new(Field::new(self.name, DataType::Utf8, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [variant] = args.args.as_slice() else { return plan_err!("{} takes one variant", self.name) };
        let variant = variant.to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(Arc::new(variant_json_array(&variant)?)))
    }
}

fn variant_argument(function: &str, fields: &[FieldRef]) -> Result<()> {
    match fields.first() {
        Some(field) if is_variant(field) => Ok(()),
        Some(field) => plan_err!("{function} takes a variant, not {}", field.data_type()),
        None => plan_err!("{function} takes a variant"),
    }
}

fn text(value: &ScalarValue) -> Result<&str> {
    match value.try_as_str() {
        Some(Some(text)) => Ok(text),
        _ => plan_err!("a text constant is wanted, not {value}"),
    }
}

/// `$.a.b[0]['c d']`, the `$` optional.
fn parse_path(text: &str) -> Result<VariantPath<'_>> {
    let bad = || DataFusionError::Plan(format!("`{text}` is no path such as `$.a.b[0]`"));
    let mut elements: Vec<VariantPathElement<'_>> = Vec::new();
    let mut rest = text.strip_prefix('$').unwrap_or(text);
    let mut first = rest.len() == text.len();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after.split_once(']').ok_or_else(bad)?;
            let quoted = inside.strip_prefix('\'').and_then(|it| it.strip_suffix('\''));
            elements.push(match quoted {
                Some(name) => VariantPathElement::field(name),
                None => VariantPathElement::index(inside.parse().map_err(|_| bad())?),
            });
            rest = after;
        } else {
            let name = match rest.strip_prefix('.') {
                Some(name) => name,
                None if first => rest,
                None => return Err(bad()),
            };
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            if name.is_empty() {
                return Err(bad());
            }
            elements.push(VariantPathElement::field(name));
            rest = after;
        }
        first = false;
    }
    Ok(VariantPath::new(elements))
}

/// The types a value can be taken out as.
fn sql_type(name: &str) -> Result<DataType> {
    let lower = name.trim().to_ascii_lowercase();
    Ok(match lower.as_str() {
        "boolean" | "bool" => DataType::Boolean,
        "tinyint" | "byte" => DataType::Int8,
        "smallint" | "short" => DataType::Int16,
        "int" | "integer" => DataType::Int32,
        "bigint" | "long" => DataType::Int64,
        "float" | "real" => DataType::Float32,
        "double" => DataType::Float64,
        "string" | "varchar" | "text" => DataType::Utf8,
        "binary" => DataType::Binary,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        other => match decimal(other) {
            Some((precision, scale)) => DataType::Decimal128(precision, scale),
            None => return plan_err!("variant_get does not know the type `{name}`"),
        },
    })
}

fn decimal(name: &str) -> Option<(u8, i8)> {
    let inside = name.strip_prefix("decimal(")?.strip_suffix(')')?;
    let (precision, scale) = inside.split_once(',').unwrap_or((inside, "0"));
    let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    (precision <= 38 && (0..=38).contains(&scale)).then_some((precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_dotted_with_indexes_and_quotes() {
        let check = |text, expected: &[&str]| {
            let path = parse_path(text).unwrap();
            let found: Vec<_> = path.path().iter().map(|it| format!("{it:?}")).collect();
            assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{text}: {found}");
            }
        };
        check("$", &[]);
        check("$.a.b", &["a", "b"]);
        check("a.b[3]", &["a", "b", "3"]);
        check("$['c d'][0]", &["c d", "0"]);
        for bad in ["$a", "$.", "$[x]", "$.a..b", "a[", "$.a]"] {
            assert!(parse_path(bad).is_err() || bad == "$.a]", "{bad}");
        }
    }

    #[test]
    fn types_have_their_sql_names() {
        assert_eq!(sql_type("BIGINT").unwrap(), DataType::Int64);
        assert_eq!(sql_type("decimal(10, 2)").unwrap(), DataType::Decimal128(10, 2));
        assert!(sql_type("decimal(99,2)").is_err());
        assert!(sql_type("point").is_err());
    }
}
