//! DELETE, UPDATE and MERGE.
//!
//! None of them goes through DataFusion's hooks for changing rows: what those are told of a condition lacks every part
//! that the optimizer made into a join, and no condition means all rows. Instead:
//!
//! [`statement`] is what the parser hands over.
//!
//! 1. [`start`] finds the target and begins the write: everything from here on reads one version.
//! 2. [`find`] asks an ordinary query for the *places* of rows, number of the file and number of the row ([`Ground`]),
//!    and [`marks`] keeps them. A condition is evaluated once, here; what follows goes by place. [`merge`] does the
//!    same with a join.
//! 3. [`removal`] takes the marked rows out of their files: by vector, or by removing files and writing anew what is left.
//! 4. [`pour`] writes new and changed rows, rows that only move, and, where the table records changes, both images.
//! 5. [`report`] makes the commit and says how history describes it.
//!
//! [`desk`] is what the steps share; [`ast`] and [`rows`] make their queries, [`assign`] the expressions in them, and
//! [`held`] keeps rows from one step to the next.
//!
//! [`Ground`]: crate::provider::Ground
mod assign;
mod ast;
mod delete;
mod desk;
mod find;
mod held;
mod marks;
mod merge;
mod pour;
mod removal;
mod report;
mod rows;
mod start;
mod statement;
mod update;

pub(crate) use self::statement::{Assignment, Clause, Delete, Merge, Then, Update, When};
