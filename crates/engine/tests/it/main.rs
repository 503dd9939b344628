//! The engine over the toy format: scans, and SQL.
mod dml;
mod scan;
mod sql;
mod world;
