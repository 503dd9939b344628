//! What one [`PartitionedFile`](datafusion::datasource::listing::PartitionedFile) of a scan stands for.
use std::sync::Arc;

use datafusion::{
    datasource::listing::PartitionedFile,
    error::Result,
    execution::{config::SessionConfig, runtime_env::RuntimeEnv},
    physical_plan::metrics::ExecutionPlanMetricsSet,
};
use lakebed_core::{
    Error,
    file::{DataFile, DeleteFile, DeleteKind, Encoding},
    format::TableFormat,
    scan::{ColumnMapping, Merge, ScanTask},
    storage::Storage,
};
use roaring::RoaringTreemap;
use tokio::sync::OnceCell;

use super::{
    error::{ScanError, external},
    footers::Readers,
    reading::Part,
    selection::Kept,
};

/// The table as its readers see it.
#[derive(Debug)]
pub(crate) struct Scene {
    pub storage: Storage,
    pub format: Arc<dyn TableFormat>,
    pub readers: Arc<Readers>,
    pub mapping: Arc<ColumnMapping>,
    /// Memory, disk and settings for merges: readers get no task context from DataFusion.
    pub runtime: Arc<RuntimeEnv>,
    pub session: SessionConfig,
}

/// How a unit's rows are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The Parquet reader's own.
    Parquet,
    /// The Parquet reader's, with rows left out.
    Selected,
    /// The table's format decodes the file.
    Native,
    /// Several files become rows together.
    Merged,
}

/// One unit of reading. Shared by the byte ranges a file is cut into.
#[derive(Debug)]
pub(crate) struct Unit {
    pub task: Arc<ScanTask>,
    /// Position of the file among the task's; 0 where all become rows together.
    pub file: usize,
    pub way: Way,
    pub part: Part,
    kept: OnceCell<Kept>,
}

impl Unit {
    /// The units of a task, of whose only file `part` is read.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](lakebed_core::ErrorKind) for encodings and kinds of deletion this build does not read.
    pub(crate) fn of(task: &Arc<ScanTask>, part: &Part) -> Result<Vec<Self>, Error> {
        for file in &task.files {
            readable(file)?;
        }
        for delete in task.deletes.iter().chain(&task.only) {
            readable_delete(delete)?;
        }
        let unit = |file, way| Self { task: Arc::clone(task), file, way, part: part.clone(), kept: OnceCell::new() };
        if *part != Part::Whole && (task.files.len() != 1 || !matches!(task.merge, Merge::Concat)) {
            return Err(Error::internal("a part of rows that several files make together"));
        }
        if !matches!(task.merge, Merge::Concat) {
            return Ok(vec![unit(0, Way::Merged)]);
        }
        Ok(task.files.iter().enumerate().map(|(at, file)| unit(at, way(task, file, part))).collect())
    }

    /// The units a merge reads, one a file.
    pub(crate) fn parts(task: &Arc<ScanTask>) -> Vec<Self> {
        let unit = |(at, file)| Self {
            task: Arc::clone(task),
            file: at,
            way: way(task, file, &Part::Whole),
            part: Part::Whole,
            kept: OnceCell::new(),
        };
        task.files.iter().enumerate().map(unit).collect()
    }

    pub(crate) fn data_file(&self) -> &DataFile {
        &self.task.files[self.file]
    }

    /// The file's name for people.
    pub(crate) fn name(&self) -> &str {
        self.data_file().path.as_str()
    }

    /// Which rows of the Parquet file are read. Vectors and footer load together, once.
    pub(crate) async fn kept(
        &self,
        scene: &Scene,
        file: &PartitionedFile,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<&Kept> {
        let load = || async {
            let footer = scene.readers.footer(file, metrics);
            let vectors = async { self.vectors(scene).await.map_err(external) };
            let (footer, (only, gone)) = futures::try_join!(footer, vectors)?;
            let rows = footer.row_groups().iter().try_fold(0u64, |sum, it| sum.checked_add_signed(it.num_rows()));
            let rows = rows.ok_or_else(|| self.bad("its row counts are no counts"))?;
            Kept::new(self.name(), rows, only, &gone).map_err(external)
        };
        self.kept.get_or_try_init(load).await
    }

    /// The positions to read, where task or part name them, and the positions that are gone.
    pub(crate) async fn vectors(&self, scene: &Scene) -> Result<(Option<RoaringTreemap>, RoaringTreemap), Error> {
        let only = self.union(scene, &self.task.only);
        let gone = self.union(scene, &self.task.deletes);
        let (only, mut gone) = futures::try_join!(only, gone)?;
        let only = (!self.task.only.is_empty()).then_some(only);
        Ok(match (&self.part, only) {
            (Part::Only(part), Some(only)) => (Some(only & part.as_ref()), gone),
            (Part::Only(part), None) => (Some(part.as_ref().clone()), gone),
            (Part::Without(part), only) => {
                gone |= part.as_ref();
                (only, gone)
            }
            (Part::Whole, only) => (only, gone),
        })
    }

    async fn union(&self, scene: &Scene, deletes: &[DeleteFile]) -> Result<RoaringTreemap, Error> {
        let mut all = RoaringTreemap::new();
        for delete in deletes.iter().filter(|it| concerns(it, self.data_file())) {
            all |= scene.format.decode_vector(&scene.storage, delete).await?;
        }
        Ok(all)
    }

    fn bad(&self, reason: &str) -> datafusion::error::DataFusionError {
        external(ScanError::BadFile { file: self.name().to_owned(), reason: reason.to_owned() })
    }
}

fn way(task: &ScanTask, file: &DataFile, part: &Part) -> Way {
    if file.encoding == Encoding::Native {
        return Way::Native;
    }
    match *part == Part::Whole && task.only.is_empty() && !task.deletes.iter().any(|it| concerns(it, file)) {
        true => Way::Parquet,
        false => Way::Selected,
    }
}

/// A vector without targets is of the task's only file.
pub(crate) fn concerns(delete: &DeleteFile, file: &DataFile) -> bool {
    delete.targets.is_empty() || delete.targets.contains(&file.path)
}

fn readable(file: &DataFile) -> Result<(), Error> {
    match file.encoding {
        Encoding::Parquet | Encoding::Native => Ok(()),
        Encoding::Orc => Err(ScanError::Unsupported { what: format!("{}: ORC", file.path) }.into()),
        Encoding::Avro => Err(ScanError::Unsupported { what: format!("{}: Avro", file.path) }.into()),
    }
}

fn readable_delete(delete: &DeleteFile) -> Result<(), Error> {
    let what = match delete.kind {
        DeleteKind::Vector => return Ok(()),
        DeleteKind::Positions => "a file of deleted positions",
        DeleteKind::Equality { .. } => "a file of equality deletes",
    };
    Err(ScanError::Unsupported { what: what.to_owned() }.into())
}
