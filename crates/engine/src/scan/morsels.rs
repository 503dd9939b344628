//! Opens the units of a scan.
//!
//! - *Parquet*: DataFusion's own planner; nothing of ours stays on the path but a name for errors.
//! - *Selected*: vectors and footer load first, then the same planner with the rows to read.
//! - *Native* and *merged*: a stream of our own.
use std::{collections::HashMap, sync::Arc};

use arrow_array::RecordBatch;
use datafusion::{
    datasource::{listing::PartitionedFile, physical_plan::parquet::ParquetRowSelection},
    error::Result,
    physical_plan::metrics::ExecutionPlanMetricsSet,
};
pub(crate) use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::{FutureExt, StreamExt, stream::BoxStream};
use lakebed_codec::fence::fence;
use lakebed_core::Error;

use super::{
    adapt::Wanted,
    early::Early,
    error::{about_file, external},
    finish::Finish,
    masks::Cut,
    merge, native,
    selection::Kept,
    unit::{Scene, Unit, Way},
};

/// Whether `plain` reads a row number more, last, and what it is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Masks {
    /// It reads none.
    None,
    /// It is not used: with a limit, rows must not go after they were counted.
    Unused,
    Used,
}

#[derive(Debug)]
pub(crate) struct LakeMorselizer {
    pub plain: Arc<dyn Morselizer>,
    pub scene: Arc<Scene>,
    pub fields: Arc<HashMap<String, Wanted>>,
    pub finish: Arc<Finish>,
    pub early: Option<Early>,
    pub masks: Masks,
    pub metrics: ExecutionPlanMetricsSet,
}

impl Morselizer for LakeMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let Some(unit) = file.extension::<Arc<Unit>>().map(Arc::clone) else {
            return Err(external(Error::internal(format!(
                "{} was planned without its task",
                file.object_meta.location
            ))));
        };
        if file.range.is_some() && matches!(unit.way, Way::Native | Way::Merged) {
            return Err(external(Error::internal("a unit that is read whole was cut into ranges")));
        }
        if unit.way != Way::Merged && self.early.as_ref().is_some_and(|it| it.drops(&file)) {
            return Ok(Box::new(Nothing));
        }
        let (scene, finish) = (Arc::clone(&self.scene), Arc::clone(&self.finish));
        let fields = Arc::clone(&self.fields);
        Ok(match unit.way {
            Way::Parquet => Named::new(unit, self.masks.cut(), self.plain.plan_file(file)?),
            Way::Selected => Box::new(Selecting {
                plain: Arc::clone(&self.plain),
                scene,
                unit,
                file,
                masks: self.masks,
                metrics: self.metrics.clone(),
            }),
            Way::Native => Box::new(Ready::new(native::rows(scene, unit, finish, fields, file.partition_values))),
            Way::Merged => Box::new(Ready::new(merge::rows(scene, unit, finish, fields, file.partition_values))),
        })
    }
}

impl Masks {
    /// What becomes of batches that keep all of their rows.
    fn cut(self) -> Cut {
        match self {
            Self::None => Cut::Nothing,
            Self::Unused | Self::Used => Cut::Number,
        }
    }
}

/// Loads a unit's vectors, then plans the rows that remain.
struct Selecting {
    plain: Arc<dyn Morselizer>,
    scene: Arc<Scene>,
    unit: Arc<Unit>,
    file: PartitionedFile,
    masks: Masks,
    metrics: ExecutionPlanMetricsSet,
}

impl std::fmt::Debug for Selecting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selecting").field("unit", &self.unit).finish_non_exhaustive()
    }
}

impl MorselPlanner for Selecting {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { plain, scene, unit, file, masks, metrics } = *self;
        Ok(Some(MorselPlan::new().with_pending_planner(async move {
            let kept = unit.kept(&scene, &file, &metrics).await?;
            let mask = (masks == Masks::Used).then(|| kept.mask()).flatten();
            let (file, cut) = match (kept, mask) {
                (Kept::All, _) => (file, masks.cut()),
                (Kept::Some { kept: 0, .. }, _) => return Ok(Box::new(Nothing) as Box<dyn MorselPlanner>),
                (Kept::Some { .. }, Some(mask)) => (file, Cut::Mask(mask)),
                (Kept::Some { runs, .. }, None) => {
                    (file.with_extension(ParquetRowSelection::new(runs.clone())), masks.cut())
                }
            };
            let planner = plain.plan_file(file)?;
            Ok(Named::new(unit, cut, planner))
        })))
    }
}

/// A planner of nothing.
#[derive(Debug)]
struct Nothing;

impl MorselPlanner for Nothing {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(None)
    }
}

/// Adds the file's name to what goes wrong with it, keeps panics of decoders inside, and cuts batches.
#[derive(Debug)]
struct Named {
    unit: Arc<Unit>,
    cut: Cut,
    inner: Box<dyn MorselPlanner>,
}

impl Named {
    #[expect(clippy::new_ret_no_self, reason = "planners are only used boxed")]
    fn new(unit: Arc<Unit>, cut: Cut, inner: Box<dyn MorselPlanner>) -> Box<dyn MorselPlanner> {
        Box::new(Self { unit, cut, inner })
    }
}

impl MorselPlanner for Named {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { unit, cut, inner } = *self;
        let planned = fence(unit.name(), || inner.plan()).map_err(external)?;
        let Some(mut plan) = planned.map_err(|it| about_file(unit.name(), it))? else { return Ok(None) };
        let morsels = plan.take_morsels().into_iter();
        let morsels = morsels
            .map(|inner| Box::new(NamedMorsel { unit: Arc::clone(&unit), cut: cut.clone(), inner }) as Box<dyn Morsel>);
        let mut named = MorselPlan::new().with_morsels(morsels.collect());
        let planners = plan.take_ready_planners().into_iter().map(|it| Self::new(Arc::clone(&unit), cut.clone(), it));
        named = named.with_planners(planners.collect());
        if let Some(pending) = plan.take_pending_planner() {
            named.set_pending_planner(async move {
                let guarded = std::panic::AssertUnwindSafe(pending).catch_unwind().await;
                let next = guarded.map_err(|_| gave_up(&unit))?;
                Ok(Self::new(Arc::clone(&unit), cut, next.map_err(|it| about_file(unit.name(), it))?))
            });
        }
        Ok(Some(named))
    }
}

#[derive(Debug)]
struct NamedMorsel {
    unit: Arc<Unit>,
    cut: Cut,
    inner: Box<dyn Morsel>,
}

impl Morsel for NamedMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { unit, cut, inner } = *self;
        let guarded = std::panic::AssertUnwindSafe(inner.into_stream()).catch_unwind();
        guarded
            .map(move |it| match it {
                Ok(batch) => batch.and_then(|it| cut.apply(it)).map_err(|it| about_file(unit.name(), it)),
                Err(_) => Err(gave_up(&unit)),
            })
            .boxed()
    }
}

fn gave_up(unit: &Unit) -> datafusion::error::DataFusionError {
    external(Error::corrupt(format!("{}: the Parquet decoder gave up on it", unit.name())))
}

/// One stream of our own.
struct Ready(BoxStream<'static, Result<RecordBatch>>);

impl Ready {
    fn new(rows: BoxStream<'static, Result<RecordBatch>>) -> Self {
        Self(rows)
    }
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready").finish_non_exhaustive()
    }
}

impl MorselPlanner for Ready {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(Some(MorselPlan::new().with_morsels(vec![self])))
    }
}

impl Morsel for Ready {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        self.0
    }
}
