//! The arguments of a table function: constants, by position or by name.
use std::collections::BTreeMap;

use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use lakebed_core::{Error, Result, expr::Scalar};

use crate::{
    sql::{
        pins::{self, Constants, Pin},
        wanted::Argument,
    },
    text::did_you_mean,
};

/// Named arguments that fix the version of the table.
pub(crate) const VERSION_ARGUMENTS: [&str; 3] = ["version", "timestamp", "ref"];

/// One call's arguments by parameter name.
#[derive(Debug)]
pub(crate) struct Call {
    function: String,
    values: BTreeMap<String, ScalarValue>,
}

impl Call {
    /// Arguments by position take `positional` in order; names may be of those or of `named`.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) for an unknown, repeated or superfluous argument, or one that is
    /// no constant.
    pub(crate) fn new(
        function: &str,
        arguments: &[Argument],
        positional: &[&str],
        named: &[&str],
        constants: &dyn Constants,
    ) -> Result<Self> {
        let mut values = BTreeMap::new();
        let mut places = positional.iter();
        for argument in arguments {
            let name = match &argument.name {
                Some(name) if positional.contains(&name.as_str()) || named.contains(&name.as_str()) => name.clone(),
                Some(name) => return Err(unknown(function, name, positional, named)),
                None => match places.next() {
                    Some(name) => (*name).to_owned(),
                    None => return Err(too_many(function, positional)),
                },
            };
            let value = constants.constant(&argument.value)?;
            if values.insert(name.clone(), value).is_some() {
                return Err(Error::invalid(format!("{function}(…): `{name}` is given twice")));
            }
        }
        Ok(Self { function: function.to_owned(), values })
    }

    pub(crate) fn optional(&self, name: &str) -> Option<&ScalarValue> {
        self.values.get(name)
    }

    pub(crate) fn required(&self, name: &str) -> Result<&ScalarValue> {
        self.optional(name).ok_or_else(|| Error::invalid(format!("{}(…) needs `{name}`", self.function)))
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str> {
        let value = self.required(name)?;
        pins::text(value)
            .ok_or_else(|| Error::invalid(format!("{}(…): `{name}` is a string, not {value}", self.function)))
    }

    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<&str>> {
        self.optional(name).map(|_| self.text(name)).transpose()
    }

    /// True or false; false if it is not given.
    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        match self.optional(name) {
            None => Ok(false),
            Some(ScalarValue::Boolean(Some(it))) => Ok(*it),
            Some(other) => Err(self.wrong(name, other)),
        }
    }

    /// A number that is not below zero.
    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>> {
        let Some(value) = self.optional(name) else { return Ok(None) };
        match value.cast_to(&DataType::Float64) {
            Ok(ScalarValue::Float64(Some(it))) if it >= 0.0 && it.is_finite() && pins::text(value).is_none() => {
                Ok(Some(it))
            }
            _ => Err(self.wrong(name, value)),
        }
    }

    /// A whole number that is not below zero.
    pub(crate) fn count(&self, name: &str) -> Result<Option<usize>> {
        let Some(value) = self.optional(name) else { return Ok(None) };
        let count = pins::integer(value).and_then(|it| usize::try_from(it).ok());
        count.map(Some).ok_or_else(|| self.wrong(name, value))
    }

    /// The version that `version =>`, `timestamp =>` or `ref =>` names.
    pub(crate) fn pin(&self, constants: &dyn Constants) -> Result<Option<Pin>> {
        let mut pin = None;
        for key in VERSION_ARGUMENTS {
            if let Some(value) = self.optional(key) {
                pins::set(&mut pin, pins::of_value(key, value.clone(), constants)?)?;
            }
        }
        Ok(pin)
    }

    /// A value as formats take it.
    pub(crate) fn scalar(&self, name: &str) -> Result<Option<Scalar>> {
        let Some(value) = self.optional(name) else { return Ok(None) };
        if let Some(text) = pins::text(value) {
            return Ok(Some(Scalar::Utf8(text.to_owned())));
        }
        if let Some(integer) = pins::integer(value) {
            let integer = i64::try_from(integer);
            return integer.map(|it| Some(Scalar::Int(it))).map_err(|_| self.wrong(name, value));
        }
        match value {
            ScalarValue::Boolean(Some(it)) => Ok(Some(Scalar::Boolean(*it))),
            ScalarValue::Float64(Some(it)) => Ok(Some(Scalar::Double(*it))),
            other => Err(self.wrong(name, other)),
        }
    }

    fn wrong(&self, name: &str, value: &ScalarValue) -> Error {
        Error::invalid(format!("{}(…): `{name}` cannot be {value}", self.function))
    }
}

fn unknown(function: &str, name: &str, positional: &[&str], named: &[&str]) -> Error {
    let known: Vec<&str> = positional.iter().chain(named).copied().collect();
    let error = Error::invalid(format!("{function}(…) has no argument `{name}`"));
    match did_you_mean(name, known.iter().copied()) {
        Some(near) => error.with_hint(format!("did you mean `{near}`?")),
        None => error.with_hint(format!("its arguments are {}", known.join(", "))),
    }
}

fn too_many(function: &str, positional: &[&str]) -> Error {
    Error::invalid(format!("{function}(…) takes at most {} arguments by position", positional.len()))
        .with_hint(format!("they are {}", positional.join(", ")))
}
