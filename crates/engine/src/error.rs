//! DataFusion's errors in Lakebed's kinds.
//!
//! An error of a format or of storage travels through DataFusion boxed, wrapped and shared; it comes out with the
//! kind it had. What DataFusion finds wrong with a statement is the statement's fault, and running out of memory is a
//! limit, not a bug.
use std::error::Error as StdError;

use arrow_schema::ArrowError;
use datafusion::{common::SchemaError, error::DataFusionError};
use lakebed_core::{Error, ErrorKind, storage::storage_error};

use crate::text::did_you_mean;

/// Lakebed's error inside an error of DataFusion, or the nearest one.
pub fn of_datafusion(err: DataFusionError) -> Error {
    match err {
        DataFusionError::External(inner) => of_boxed(inner),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => of_datafusion(*inner),
        DataFusionError::Shared(inner) => match std::sync::Arc::try_unwrap(inner) {
            Ok(inner) => of_datafusion(inner),
            Err(shared) => of_shared(&shared),
        },
        DataFusionError::Collection(mut all) => match all.is_empty() {
            true => Error::internal("an error without a cause"),
            false => of_datafusion(all.swap_remove(0)),
        },
        DataFusionError::ArrowError(inner, _) => of_arrow(*inner),
        DataFusionError::ObjectStore(inner) => storage_error("reading", *inner),
        DataFusionError::IoError(inner) => Error::new(ErrorKind::Unavailable, inner),
        DataFusionError::SchemaError(inner, _) => of_schema(*inner),
        other => plain(&other),
    }
}

/// The errors that hold no other.
fn plain(err: &DataFusionError) -> Error {
    let (kind, text) = match err {
        DataFusionError::SQL(inner, _) => (ErrorKind::Invalid, inner.to_string()),
        DataFusionError::NotImplemented(text) => (ErrorKind::Unsupported, text.clone()),
        DataFusionError::Plan(text) | DataFusionError::Configuration(text) | DataFusionError::Execution(text) => {
            (ErrorKind::Invalid, text.clone())
        }
        DataFusionError::ResourcesExhausted(text) => (ErrorKind::Limit, text.clone()),
        DataFusionError::Internal(text) => (ErrorKind::Internal, text.clone()),
        DataFusionError::ParquetError(inner) => (ErrorKind::Corrupt, inner.to_string()),
        other => (ErrorKind::Internal, other.to_string()),
    };
    // Under memory pressure the list of consumers comes first, what failed last.
    let failed = text.lines().find_map(|it| it.trim().strip_prefix("Error: "));
    let text = failed.or(text.lines().next()).unwrap_or_default().trim_end_matches('.').to_owned();
    let error = Error::new(kind, text);
    match kind {
        ErrorKind::Limit => error.with_hint("raise --memory; sorts, aggregations and merge joins spill to disk"),
        _ => error,
    }
}

fn of_boxed(inner: Box<dyn StdError + Send + Sync>) -> Error {
    let inner = match inner.downcast::<Error>() {
        Ok(ours) => return *ours,
        Err(inner) => inner,
    };
    let inner = match inner.downcast::<DataFusionError>() {
        Ok(inner) => return of_datafusion(*inner),
        Err(inner) => inner,
    };
    let inner = match inner.downcast::<ArrowError>() {
        Ok(inner) => return of_arrow(*inner),
        Err(inner) => inner,
    };
    match inner.downcast::<object_store::Error>() {
        Ok(inner) => storage_error("reading", *inner),
        Err(inner) => Error::new(ErrorKind::Internal, inner),
    }
}

fn of_arrow(err: ArrowError) -> Error {
    match err {
        ArrowError::ExternalError(inner) => of_boxed(inner),
        ArrowError::MemoryError(text) => Error::new(ErrorKind::Limit, text),
        ArrowError::NotYetImplemented(text) => Error::unsupported(text),
        ArrowError::ParquetError(text) => Error::corrupt(text),
        ArrowError::IoError(_, inner) => Error::new(ErrorKind::Unavailable, inner),
        // A cast or an operation that a value of the query does not allow.
        other => Error::new(ErrorKind::Invalid, other),
    }
}

/// Another stream holds the error, too: its kind and text are copied.
fn of_shared(err: &DataFusionError) -> Error {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(err);
    while let Some(it) = cause {
        if let Some(ours) = it.downcast_ref::<Error>() {
            let copy = Error::new(ours.kind(), ours.to_string());
            return match ours.hint() {
                Some(hint) => copy.with_hint(hint),
                None => copy,
            };
        }
        if let Some(DataFusionError::External(inner)) = it.downcast_ref::<DataFusionError>() {
            cause = Some(inner.as_ref());
            continue;
        }
        cause = it.source();
    }
    plain(err.find_root())
}

fn of_schema(err: SchemaError) -> Error {
    match err {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let error = Error::invalid(format!("no column is called `{}`", field.flat_name()));
            // Names of ours begin with NUL.
            let names = valid_fields.iter().map(|it| it.name()).filter(|it| !it.starts_with('\0'));
            let names: Vec<&str> = names.collect();
            match did_you_mean(field.name(), names.iter().copied()) {
                Some(near) => error.with_hint(format!("did you mean `{near}`?")),
                None if names.is_empty() => error,
                None => error.with_hint(format!("the columns here are {}", listed(&names))),
            }
        }
        SchemaError::AmbiguousReference { field } => {
            Error::invalid(format!("column `{}` is ambiguous", field.flat_name()))
                .with_hint("put the relation's name in front of it")
        }
        other => Error::invalid(other.to_string()),
    }
}

fn listed(names: &[&str]) -> String {
    const MOST: usize = 20;
    let mut text: Vec<String> = names.iter().take(MOST).map(|it| format!("`{it}`")).collect();
    if names.len() > MOST {
        text.push(format!("and {} more", names.len() - MOST));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn lake() -> DataFusionError {
        DataFusionError::External(Box::new(Error::corrupt("7.json ends early").with_hint("run doctor")))
    }

    fn check(err: DataFusionError, kind: ErrorKind, text: &str) {
        let ours = of_datafusion(err);
        assert_eq!((ours.kind(), ours.to_string().as_str()), (kind, text));
    }

    #[test]
    fn a_wrapped_error_keeps_its_kind() {
        check(lake(), ErrorKind::Corrupt, "7.json ends early");
        check(lake().context("while scanning"), ErrorKind::Corrupt, "7.json ends early");
        check(DataFusionError::Shared(Arc::new(lake())), ErrorKind::Corrupt, "7.json ends early");
        let shared = Arc::new(lake());
        check(DataFusionError::Shared(Arc::clone(&shared)), ErrorKind::Corrupt, "7.json ends early");
        check(ArrowError::ExternalError(Box::new(lake())).into(), ErrorKind::Corrupt, "7.json ends early");
        check(DataFusionError::Collection(vec![lake()]), ErrorKind::Corrupt, "7.json ends early");
        assert_eq!(of_datafusion(DataFusionError::Shared(shared)).hint(), Some("run doctor"));
    }

    #[test]
    fn other_errors_are_the_statements_or_the_limits() {
        check(DataFusionError::Plan("no such thing".into()), ErrorKind::Invalid, "no such thing");
        check(DataFusionError::ResourcesExhausted("full".into()), ErrorKind::Limit, "full");
        check(DataFusionError::NotImplemented("later".into()), ErrorKind::Unsupported, "later");
        check(ArrowError::DivideByZero.into(), ErrorKind::Invalid, "Divide by zero error");
    }
}
