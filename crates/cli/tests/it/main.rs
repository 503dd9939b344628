//! The binary as a user meets it: what it prints, where, and how it ends.
mod demo;
mod exits;
mod run;
mod shapes;
mod sql;
mod transcripts;
