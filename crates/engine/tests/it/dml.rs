//! DELETE, UPDATE and MERGE.
mod model;
mod random;
mod scenarios;
