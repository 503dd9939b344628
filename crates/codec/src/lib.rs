//! Bytes that more than one format stores: bitmaps of row numbers, and Parquet files small enough to be metadata.
//!
//! Everything here reads bytes that nobody vouches for. Sizes are checked before memory is asked for, numbers before
//! they index, and decoders of other projects run behind one [`fence`], so that their panics become errors.
pub mod bitmap;
pub mod error;
pub mod fence;
pub mod parquet;

pub use error::CodecError;
