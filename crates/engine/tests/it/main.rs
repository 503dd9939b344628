//! The engine over the toy format: scans, and SQL.
mod scan;
mod sql;
mod world;
