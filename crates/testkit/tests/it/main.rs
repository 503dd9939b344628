//! The format-neutral suites, run on the toy format; and the look of the sources.
mod pond;
mod sim;
mod tidy;
