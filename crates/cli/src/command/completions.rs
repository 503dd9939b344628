//! `completions SHELL`: a script for the shell to source.
use std::io::Write as _;

use clap::CommandFactory as _;

use crate::{
    args::{Cli, Completions},
    failure::{Failure, Verdict},
    render,
};

pub(crate) fn run(args: &Completions) -> Result<Verdict, Failure> {
    // Generated into memory: the generator panics where a write fails, and a closed pipe is no panic.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lakebed", &mut script);
    let mut out = render::stdout();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Verdict::Yes)
}
