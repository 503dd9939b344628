//! The Delta format from outside: tables other engines wrote, what opening costs, what damage does.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod conformance;
mod damage;
mod faults;
mod fuzz;
mod growth;
mod history_cost;
mod neutral;
mod parts;
mod replay;
mod requests;
mod world;
