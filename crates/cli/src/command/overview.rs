//! `lakebed` alone: what it is and where to begin, on one screen.
use std::io::Write;

use crate::{
    failure::{Failure, Verdict},
    render,
};

const OVERVIEW: &str = "\
Lakebed reads, writes and explains versioned lake tables, at any version.
  query   sql  head                    look   info  log  show  schema  files
  history timeline  refs  at  diff     change sql  tag  restore  compact
  keep    doctor  vacuum  orphans  expire  checkpoint

examples
  lakebed demo                              a tour on a table it makes
  lakebed log ./orders                      versions, and which can be read
  lakebed sql -c \"SELECT * FROM delta.`./orders` LIMIT 5\"
  lakebed diff ./orders @3 --files          what changed since version 3
  lakebed restore './orders@{2 hours ago}'  the rows of then, as a new version
`lakebed help VERB` explains one command, `lakebed man` everything.
";

pub(crate) fn run() -> Result<Verdict, Failure> {
    let mut out = render::stdout();
    out.write_all(OVERVIEW.as_bytes())?;
    out.flush()?;
    Ok(Verdict::Yes)
}
