//! Functions whose result is as large as a number says: `repeat('a', 1500000000)`.
//!
//! DataFusion's memory pool counts what operators hold, not what one call of a scalar function allocates. So before the
//! call its result is estimated from the arguments, and one call on one batch gets a share of the memory limit.
use std::{collections::HashMap, hash::Hash, sync::Arc};

use arrow_array::{Array, ArrayRef, Int64Array, cast::AsArray, types::Int64Type};
use arrow_cast::cast;
use arrow_schema::{DataType, FieldRef};
use datafusion::{
    error::{DataFusionError, Result},
    logical_expr::{
        ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    },
};

/// Where the session has no limit.
const MOST: usize = 1 << 30;
/// One call's share of the memory limit.
const SHARE: usize = 16;

/// How the size of a function's result follows from its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Growth {
    /// The first argument, as often as the second says.
    Times,
    /// As many characters as the second argument says.
    Padded,
    /// As many elements as the second argument says.
    Resized,
    /// The numbers or days from the first argument to the second, by steps of the third.
    Series,
}

const FUNCTIONS: [(&str, Growth); 7] = [
    ("repeat", Growth::Times),
    ("array_repeat", Growth::Times),
    ("lpad", Growth::Padded),
    ("rpad", Growth::Padded),
    ("array_resize", Growth::Resized),
    ("range", Growth::Series),
    ("generate_series", Growth::Series),
];

/// The bounded forms of those functions that are among `all`.
pub(crate) fn functions(all: &HashMap<String, Arc<ScalarUDF>>, memory_limit: Option<usize>) -> Vec<ScalarUDF> {
    let most = memory_limit.map_or(MOST, |it| it / SHARE);
    let bounded = |(name, growth): (&str, Growth)| {
        let inner = Arc::clone(all.get(name)?.inner());
        Some(ScalarUDF::new_from_impl(Bounded { inner, growth, most }))
    };
    FUNCTIONS.into_iter().filter_map(bounded).collect()
}

#[derive(Debug)]
struct Bounded {
    inner: Arc<dyn ScalarUDFImpl>,
    growth: Growth,
    /// Bytes of one call's result.
    most: usize,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        (self.name(), self.growth, self.most) == (other.name(), other.growth, other.most)
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = self.growth.bytes(&arguments)?;
        if bytes > self.most as u128 {
            let (name, most) = (self.name(), self.most);
            let message = format!("{name}(…) would make {bytes} bytes in one go; at most {most} are made");
            return Err(DataFusionError::ResourcesExhausted(message));
        }
        self.inner.invoke_with_args(arguments)
    }
}

impl Growth {
    /// About how many bytes the result has; never far below.
    fn bytes(self, call: &ScalarFunctionArgs) -> Result<u128> {
        let constant = call.args.iter().all(|it| matches!(it, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { call.number_rows };
        let argument = |at: usize| call.args.get(at).map(|it| it.to_array(rows)).transpose();
        let (Some(first), second) = (argument(0)?, argument(1)?) else { return Ok(0) };
        Ok(match (self, second) {
            (Self::Series, second) => {
                let Some((first, last, step)) = series(&first, second.as_ref(), argument(2)?.as_ref()) else {
                    return Ok(0);
                };
                let length = |at: usize| match step.as_ref().map_or(1, |it| it.value(at)).unsigned_abs() {
                    0 => 0,
                    step => u128::from(last.value(at).abs_diff(first.value(at)) / step) + 1,
                };
                (0..rows).map(length).sum::<u128>() * 8
            }
            (_, None) => 0,
            (Self::Times, Some(counts)) => {
                let (counts, sizes) = (numbers(&counts), sizes(&first));
                (0..rows).map(|it| count(&counts, it) * sizes(it)).sum()
            }
            (Self::Padded, Some(counts)) => {
                let counts = numbers(&counts);
                // A character has up to four bytes.
                (0..rows).map(|it| 4 * count(&counts, it)).sum()
            }
            (Self::Resized, Some(counts)) => {
                let counts = numbers(&counts);
                (0..rows).map(|it| 8 * count(&counts, it)).sum()
            }
        })
    }
}

fn numbers(array: &ArrayRef) -> Option<Int64Array> {
    cast(array, &DataType::Int64).ok().map(|it| it.as_primitive::<Int64Type>().clone())
}

fn count(counts: &Option<Int64Array>, at: usize) -> u128 {
    let count = counts.as_ref().filter(|it| it.is_valid(at)).map_or(0, |it| it.value(at));
    u128::try_from(count).unwrap_or(0)
}

/// The bytes of one element: of text its length, of other types the average.
fn sizes(array: &ArrayRef) -> Box<dyn Fn(usize) -> u128> {
    let text = cast(array, &DataType::LargeBinary)
        .ok()
        .filter(|_| matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View));
    match text {
        Some(text) => {
            let text = text.as_binary::<i64>().clone();
            Box::new(move |at| text.value(at).len() as u128)
        }
        None => {
            let each = array.get_array_memory_size().div_ceil(array.len().max(1)) as u128;
            Box::new(move |_| each)
        }
    }
}

/// First, last and step as numbers. Dates go by days; what is neither is not estimated.
fn series(
    first: &ArrayRef,
    last: Option<&ArrayRef>,
    step: Option<&ArrayRef>,
) -> Option<(Int64Array, Int64Array, Option<Int64Array>)> {
    match (first.data_type(), last) {
        (DataType::Date32, Some(last)) => Some((numbers(first)?, numbers(last)?, None)),
        (DataType::Int64, Some(last)) => Some((numbers(first)?, numbers(last)?, step.and_then(numbers))),
        (DataType::Int64, None) => {
            let zero = Int64Array::from(vec![0; first.len()]);
            Some((zero, numbers(first)?, None))
        }
        _ => None,
    }
}
