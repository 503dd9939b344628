//! From sets of row positions to the runs of rows a reader keeps.
//!
//! A selection covers every row of its file: the reader refuses one that is a row short. Positions come sorted, so one
//! walk makes the runs; a vector of one percent random deletions makes about two runs a deletion.
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use roaring::RoaringTreemap;

use super::error::ScanError;

/// Runs of so many rows on average are worth skipping between.
const LONG_RUN: usize = 512;

/// The rows of one file that a task reads.
#[derive(Debug, Clone)]
pub(crate) enum Kept {
    All,
    /// `kept` of them, in runs.
    Some {
        kept: u64,
        runs: RowSelection,
    },
}

impl Kept {
    /// Of `rows` rows, those in `only` (all if there is none) that are not in `gone`.
    ///
    /// # Errors
    /// [`ScanError::VectorBeyondEnd`] if either names a row the file does not have: it belongs to another file.
    pub(crate) fn new(
        file: &str,
        rows: u64,
        only: Option<RoaringTreemap>,
        gone: &RoaringTreemap,
    ) -> Result<Self, ScanError> {
        for named in only.iter().chain([gone]).filter_map(RoaringTreemap::max) {
            if named >= rows {
                return Err(ScanError::VectorBeyondEnd { file: file.to_owned(), row: named, rows });
            }
        }
        match only {
            Some(only) => Ok(Self::runs(rows, &(only - gone), Mark::Kept)),
            None if gone.is_empty() => Ok(Self::All),
            None => Ok(Self::runs(rows, gone, Mark::Skipped)),
        }
    }

    /// The rows as a mask, where deletions are so few and so scattered that the runs between them are short.
    pub(crate) fn mask(&self) -> Option<BooleanBuffer> {
        let Self::Some { kept, runs } = self else { return None };
        let (mut rows, mut count) = (0, 0);
        for run in runs.iter() {
            rows += run.row_count;
            count += 1;
        }
        let few = u64::try_from(rows).is_ok_and(|rows| rows - kept <= rows / 8);
        if !few || rows / LONG_RUN > count {
            return None;
        }
        let mut mask = BooleanBufferBuilder::new(rows);
        runs.iter().for_each(|run| mask.append_n(run.row_count, !run.skip));
        Some(mask.finish())
    }

    /// `rows` rows of which `marked` are kept or skipped, and the others the opposite.
    fn runs(rows: u64, marked: &RoaringTreemap, mark: Mark) -> Self {
        let kept = match mark {
            Mark::Kept => marked.len(),
            Mark::Skipped => rows - marked.len(),
        };
        let mut runs = Vec::new();
        let mut next = 0;
        let mut positions = marked.iter().peekable();
        while let Some(start) = positions.next() {
            let mut end = start + 1;
            while positions.next_if_eq(&end).is_some() {
                end += 1;
            }
            if start > next {
                runs.push(run(start - next, mark == Mark::Skipped));
            }
            runs.push(run(end - start, mark == Mark::Kept));
            next = end;
        }
        if next < rows {
            runs.push(run(rows - next, mark == Mark::Skipped));
        }
        Self::Some { kept, runs: runs.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Kept,
    Skipped,
}

fn run(rows: u64, kept: bool) -> RowSelector {
    let rows = usize::try_from(rows).expect("a file's rows are counted in memory");
    match kept {
        true => RowSelector::select(rows),
        false => RowSelector::skip(rows),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(rows: u64, only: Option<&[u64]>, gone: &[u64]) -> String {
        let only = only.map(|it| it.iter().copied().collect());
        match Kept::new("f", rows, only, &gone.iter().copied().collect()) {
            Ok(Kept::All) => "all".to_owned(),
            Ok(Kept::Some { kept, runs }) => {
                let runs: Vec<_> =
                    runs.iter().map(|it| format!("{}{}", if it.skip { '-' } else { '+' }, it.row_count)).collect();
                format!("{kept}: {}", runs.join(" "))
            }
            Err(err) => err.to_string(),
        }
    }

    #[test]
    fn runs_cover_the_file() {
        assert_eq!(shown(10, None, &[]), "all");
        assert_eq!(shown(10, None, &[0, 1, 5, 9]), "6: -2 +3 -1 +3 -1");
        assert_eq!(shown(3, None, &[0, 1, 2]), "0: -3");
        assert_eq!(shown(10, Some(&[3, 4, 7]), &[]), "3: -3 +2 -2 +1 -2");
        assert_eq!(shown(10, Some(&[3, 4, 7]), &[4]), "2: -3 +1 -3 +1 -2");
        assert_eq!(shown(4, Some(&[]), &[]), "0: -4");
        assert_eq!(shown(0, None, &[]), "all");
    }

    #[test]
    fn a_row_the_file_does_not_have_is_an_error() {
        assert_eq!(shown(3, None, &[3]), "f: its vector names row 3, but the file has 3 rows");
        assert_eq!(shown(3, Some(&[7]), &[]), "f: its vector names row 7, but the file has 3 rows");
    }

    proptest! {
        #[test]
        fn runs_say_the_same_as_the_sets(
            rows in 0u64..200,
            only in proptest::option::of(proptest::collection::btree_set(0u64..200, 0..60)),
            gone in proptest::collection::btree_set(0u64..200, 0..60),
        ) {
            let within = |it: std::collections::BTreeSet<u64>| it.into_iter().filter(|it| *it < rows).collect::<Vec<_>>();
            let (only, gone) = (only.map(within), within(gone));
            let expected: Vec<u64> =
                (0..rows).filter(|it| only.as_ref().is_none_or(|o| o.contains(it)) && !gone.contains(it)).collect();
            let kept = Kept::new("f", rows, only.map(|it| it.into_iter().collect()), &gone.into_iter().collect()).unwrap();
            let mut at = 0;
            let mut found = Vec::new();
            match kept {
                Kept::All => found.extend(0..rows),
                Kept::Some { runs, kept } => {
                    for run in runs.iter() {
                        let end = at + run.row_count as u64;
                        if !run.skip { found.extend(at..end); }
                        at = end;
                    }
                    prop_assert_eq!(at, rows);
                    prop_assert_eq!(kept, found.len() as u64);
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
