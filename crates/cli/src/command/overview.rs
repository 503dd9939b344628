//! `lakebed` alone: what it is and where to begin, on one screen.
use std::io::Write;

use crate::{
    failure::{Failure, Verdict},
    render,
};

const OVERVIEW: &str = "\
Lakebed opens, queries and explains versioned lake tables, at any version.

  query     sql  head                 look      info  log  show  schema  files
  history   timeline  refs  at  diff  repair    doctor

examples
  lakebed demo                              a tour on a table it carries
  lakebed log ./orders                      versions, and which can be read
  lakebed sql -c \"SELECT * FROM delta.`./orders` LIMIT 5\"
  lakebed head './orders@{2 hours ago}'     the table as it was then
  lakebed diff ./orders @3 --files          what changed since version 3
`lakebed help VERB` explains one command, `lakebed man` everything.
";

pub(crate) fn run() -> Result<Verdict, Failure> {
    let mut out = render::stdout();
    out.write_all(OVERVIEW.as_bytes())?;
    out.flush()?;
    Ok(Verdict::Yes)
}
