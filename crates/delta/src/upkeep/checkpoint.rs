//! Writing a checkpoint: the state of a version, so that the log before it need not be read.
//!
//! 1. Small actions stand first, in a row group of their own, then live files, then tombstones that a reader of an older
//!    version, or a vacuum, may still ask for ([`rows`], [`schema`]).
//! 2. A classic checkpoint is one file. A V2 checkpoint is one file, too, while its files are few; else they stand in
//!    sidecars, which are written before the file that names them.
//! 3. The hint comes last: by then what it names is there. It is left as it is when a newer checkpoint was there before.
//!
//! Every file is a stream, encoded while it is sent ([`file`]): memory holds a batch of files and a row group.
//! Spec: Delta PROTOCOL.md, "Checkpoints", "Sidecar Files", "Last Checkpoint File".
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Error, Result,
    env::Env,
    maintain::{Body, Step},
};
use uuid::Uuid;

use self::{
    file::{Outcome, Piece, stream_of},
    schema::Content,
    small::Small,
};
use super::live::Whole;
use crate::{
    layout::{self, CheckpointName, LogFile, LogFileKind},
    properties::Properties,
    spec::Sidecar,
    state::{ListBatch, State, Tombstones},
};

mod file;
mod hint;
mod rows;
mod schema;
mod small;

pub(super) use self::hint::{of_checkpoint as hint_of, older_than as hint_older_than};

/// Files a sidecar.
const SIDECAR_FILES: usize = 100_000;
/// A V2 checkpoint of up to so many files and tombstones has no sidecars.
const EMBEDDED_FILES: u64 = 10_000;
/// Rows encoded at once.
const BATCH_ROWS: usize = 8_192;

/// Whether the hint shall name the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    Name,
    Keep,
}

/// The steps that write a checkpoint of `state`.
///
/// # Errors
/// As [`State::files`]; and for properties that say nothing sensible about retention.
pub(super) async fn steps(state: &Arc<State>, env: &Env, hint: Hint) -> Result<Vec<Step>> {
    let files = state.files().await?;
    let graves = Arc::new(Graves::of(state, env).await?);
    let small = Small::of(state, env).await?;
    let count = files.count() + graves.rows.len() as u64;
    let v2 = wants_v2(state);
    let mut plan = Plan { version: state.version, env: env.clone(), steps: Vec::new() };
    let batches = files.batches.clone();
    let (path, outcome, sidecars) = match v2 {
        false => {
            let path = layout::classic_checkpoint_path(state.version);
            let actions = small.classic();
            let outcome = plan.file(&path, Content::Classic, actions, all(batches), graves);
            (path, outcome, Vec::new())
        }
        true if count <= EMBEDDED_FILES => {
            let path = plan.unique();
            let outcome = plan.file(&path, Content::Whole, small.v2(state.version), all(batches), graves);
            (path, outcome, Vec::new())
        }
        true => {
            let sidecars = plan.sidecars(batches, graves);
            let path = plan.unique();
            let outcome = plan.main(&path, small.v2(state.version), sidecars.clone());
            (path, outcome, sidecars)
        }
    };
    if hint == Hint::Name {
        let named = hint::Named {
            version: state.version,
            path,
            v2,
            actions: if v2 { small.v2(state.version) } else { small.classic() },
            files: files.count(),
            file_actions: count,
            sidecars,
            outcome,
            now: env.clock.now(),
        };
        plan.steps.push(Step::Write { path: layout::LAST_CHECKPOINT.to_owned(), body: Body::Stream(named.body()) });
    }
    Ok(plan.steps)
}

/// Whether the table asks for V2 checkpoints, and may have them.
fn wants_v2(state: &State) -> bool {
    let policy = Properties(&state.metadata.configuration).text("delta.checkpointPolicy");
    policy == Some("v2") && state.protocol.supports("v2Checkpoint")
}

/// Tombstones that are kept: those removed after a moment.
struct Graves {
    all: Tombstones,
    /// Which of them, counted in their order.
    rows: Vec<usize>,
}

impl Graves {
    async fn of(state: &State, env: &Env) -> Result<Self> {
        let all = state.tombstones().await?;
        let oldest = super::tombstones_kept_since(state, env.clock.now());
        let rows = all.rows().enumerate().filter(|(_, (it, row))| it.time(*row) > oldest.0).map(|(at, _)| at);
        let rows = rows.collect();
        Ok(Self { all, rows })
    }

    /// Their batches, made as they are asked for.
    fn pieces(self: Arc<Self>, schema: arrow_schema::SchemaRef) -> BoxStream<'static, Result<Piece>> {
        let starts = (0..self.rows.len()).step_by(BATCH_ROWS);
        stream::iter(starts).map(move |start| self.piece(&schema, start)).boxed()
    }

    fn piece(&self, schema: &arrow_schema::SchemaRef, start: usize) -> Result<Piece> {
        let wanted = &self.rows[start..self.rows.len().min(start + BATCH_ROWS)];
        let (first, last) = (wanted[0], wanted[wanted.len() - 1]);
        let mut wanted = wanted.iter().peekable();
        let rows = (first..).zip(self.all.rows().skip(first)).take_while(|(at, _)| *at <= last);
        let rows: Vec<_> = rows.filter(|(at, _)| wanted.next_if_eq(&at).is_some()).map(|(_, it)| it).collect();
        rows::removes(schema, &rows).map(Piece::Rows)
    }
}

/// Live rows of some batches, as many as one file gets.
type Slice = Vec<(ListBatch, std::ops::Range<usize>)>;

fn all(batches: Vec<ListBatch>) -> Slice {
    let whole = |it: ListBatch| {
        let live = it.live.count;
        (it, 0..live)
    };
    batches.into_iter().map(whole).collect()
}

/// The live rows of all batches, cut after every `most`.
fn cut(batches: Vec<ListBatch>, most: usize) -> Vec<Slice> {
    let mut slices: Vec<Slice> = Vec::new();
    let mut room = 0;
    for batch in batches {
        let mut start = 0;
        while start < batch.live.count {
            if room == 0 {
                slices.push(Vec::new());
                room = most;
            }
            let end = batch.live.count.min(start + room);
            let slice = slices.last_mut().expect("one was pushed");
            slice.push((batch.clone(), start..end));
            (room, start) = (room - (end - start), end);
        }
    }
    slices
}

/// The steps so far.
struct Plan {
    version: u64,
    env: Env,
    steps: Vec<Step>,
}

/// A sidecar that is written earlier in the plan.
#[derive(Debug, Clone)]
struct Planned {
    name: String,
    outcome: Outcome,
    written_at: i64,
}

impl Planned {
    /// As the checkpoint names it; an error before it is written.
    fn sidecar(&self) -> Result<Sidecar> {
        let written = self.outcome.get().ok_or_else(|| Error::internal("a sidecar is named before it is written"))?;
        let size_in_bytes = i64::try_from(written.bytes).map_err(|it| Error::internal(it.to_string()))?;
        Ok(Sidecar { path: self.name.clone(), size_in_bytes, modification_time: self.written_at })
    }
}

impl Plan {
    fn unique(&self) -> String {
        let id = Uuid::from_u128(self.env.ids.uuid());
        let kind = LogFileKind::Checkpoint(CheckpointName::Unique { id, json: false });
        LogFile { version: self.version, kind }.path()
    }

    /// A file of small actions, live files and tombstones.
    fn file(
        &mut self,
        path: &str,
        content: Content,
        small: Vec<serde_json::Value>,
        files: Slice,
        graves: Arc<Graves>,
    ) -> Outcome {
        let schema = content.schema();
        let first = {
            let schema = Arc::clone(&schema);
            stream::once(async move { rows::small(&schema, &small).map(Piece::Rows) })
        };
        let first = first.filter(|it| {
            let some = !matches!(it, Ok(Piece::Rows(rows)) if rows.num_rows() == 0);
            async move { some }
        });
        let end = || stream::iter([Ok(Piece::EndOfGroup)]);
        let files = adds(Arc::clone(&schema), files);
        let pieces = first.chain(end()).chain(files).chain(end()).chain(graves.pieces(Arc::clone(&schema)));
        self.write(path, schema, pieces.boxed())
    }

    fn sidecars(&mut self, batches: Vec<ListBatch>, graves: Arc<Graves>) -> Vec<Planned> {
        let mut slices = cut(batches, SIDECAR_FILES);
        let mut sidecars = Vec::new();
        let none = Arc::new(Graves { all: Tombstones::default(), rows: Vec::new() });
        if slices.is_empty() {
            slices.push(Vec::new());
        }
        let last = slices.len() - 1;
        for (at, files) in slices.into_iter().enumerate() {
            let name = format!("{}.parquet", Uuid::from_u128(self.env.ids.uuid()));
            let graves = if at == last { Arc::clone(&graves) } else { Arc::clone(&none) };
            let path = format!("{}/{name}", layout::SIDECARS);
            let outcome = self.file(&path, Content::Sidecar, Vec::new(), files, graves);
            sidecars.push(Planned { name, outcome, written_at: self.env.clock.now().0 });
        }
        sidecars
    }

    /// The file that names the sidecars.
    fn main(&mut self, path: &str, small: Vec<serde_json::Value>, sidecars: Vec<Planned>) -> Outcome {
        let schema = Content::Main.schema();
        let of_schema = Arc::clone(&schema);
        let pieces = stream::once(async move {
            let mut actions = small;
            for sidecar in &sidecars {
                actions.push(serde_json::json!({ "sidecar": sidecar.sidecar()? }));
            }
            rows::small(&of_schema, &actions).map(Piece::Rows)
        });
        self.write(path, schema, pieces.boxed())
    }

    fn write(
        &mut self,
        path: &str,
        schema: arrow_schema::SchemaRef,
        pieces: BoxStream<'static, Result<Piece>>,
    ) -> Outcome {
        let outcome = Outcome::default();
        let body = Body::Stream(stream_of(path, schema, pieces, Arc::clone(&outcome)));
        self.steps.push(Step::Write { path: path.to_owned(), body });
        outcome
    }
}

/// Batches of `add` actions; what a batch of the list lacks is read when its turn comes.
fn adds(schema: arrow_schema::SchemaRef, files: Slice) -> impl stream::Stream<Item = Result<Piece>> + Send + 'static {
    let whole = stream::iter(files).then(|(batch, live)| async move {
        let rows: Vec<usize> = batch.live_rows().skip(live.start).take(live.len()).collect();
        Ok::<_, Error>((Whole::of(batch).await?, rows))
    });
    let pieces = whole.map_ok(move |(whole, rows)| {
        let schema = Arc::clone(&schema);
        let starts: Vec<usize> = (0..rows.len()).step_by(BATCH_ROWS).collect();
        stream::iter(starts.into_iter().map(move |start| {
            let rows = &rows[start..rows.len().min(start + BATCH_ROWS)];
            rows::adds(&schema, &whole, rows).map(Piece::Rows)
        }))
    });
    pieces.try_flatten()
}
