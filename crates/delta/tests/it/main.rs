//! The Delta format from outside: tables other engines wrote and Lakebed wrote, what opening costs, what damage does,
//! what becomes of tables that many write while things go wrong.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod audit;
mod conformance;
mod damage;
mod faults;
mod foreigner;
mod fuzz;
mod gaps;
mod growth;
mod history_cost;
mod known_bugs;
mod known_bugs_log;
mod neutral;
mod parts;
mod replay;
mod requests;
mod sim;
mod tamper;
mod upkeep;
mod world;
mod write;
mod write_faults;
mod written;
