//! One fence around decoders that may panic on hostile bytes.
use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::CodecError;

/// Runs a decoder of another project; its panic becomes [`CodecError::Panicked`] about `what`.
///
/// Whatever `decode` was working on must not be used again after an error: it may be half done.
pub fn fence<T>(what: &str, decode: impl FnOnce() -> T) -> Result<T, CodecError> {
    let _inside = Inside::enter();
    catch_unwind(AssertUnwindSafe(decode))
        .map_err(|panic| CodecError::Panicked { what: what.to_owned(), panic: message(panic.as_ref()) })
}

/// Whether this thread is behind a fence: a panic hook may then stay silent, since the panic becomes an error.
pub fn is_inside() -> bool {
    DEPTH.get() > 0
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Counts one fence for as long as it lives.
struct Inside;

impl Inside {
    fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason given").to_owned()
}

#[cfg(test)]
mod tests {
    use super::{fence, is_inside};

    #[test]
    fn a_panic_becomes_an_error_that_names_the_input() {
        let broken: Result<(), _> = fence("part-0.parquet", || panic!("index {} out of range", 7));
        assert_eq!(broken.unwrap_err().to_string(), "part-0.parquet: the decoder gave up: index 7 out of range");
        assert_eq!(fence("x", || 3).unwrap(), 3);
        assert!(fence("x", is_inside).unwrap() && !is_inside());
    }
}
