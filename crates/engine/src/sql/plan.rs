//! Plans a query whose tables are loaded.
//!
//! DataFusion's planner asks for everything by name, synchronously. A table reference carries the number of its slot,
//! so [`Slots`] answers with what was loaded there and never by name; a name that reaches
//! [`Planner::get_table_source`] is one that nobody loaded.
use std::{collections::BTreeSet, sync::Arc};

use arrow_schema::{DataType, SchemaRef};
use datafusion::{
    catalog::{TableFunctionArgs, TableProvider},
    common::{DFSchema, DataFusionError, Result, ScalarValue, TableReference, config::ConfigOptions, plan_err},
    datasource::{cte_worktable::CteWorkTable, provider_as_source},
    execution::SessionState,
    logical_expr::{
        AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, LogicalPlanBuilder, ScalarUDF, TableSource, WindowUDF,
        planner::{
            ContextProvider, ExprPlanner, PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
            TypePlanner,
        },
        simplify::SimplifyContext,
        var_provider::{VarType, is_system_variables},
    },
    optimizer::simplify_expressions::ExprSimplifier,
    sql::planner::{ParserOptions, PlannerContext, SqlToRel},
};
use sqlparser::ast::{self, TableFactor};

use super::{functions::Functions, membership, names::slot_of};
use crate::scan::VIRTUAL;

/// A table reference, loaded.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// How its columns are qualified.
    pub(crate) reference: TableReference,
    pub(crate) provider: Arc<dyn TableProvider>,
}

/// The session's functions and options, and the tables of one statement.
pub(crate) struct Planner<'a> {
    state: &'a SessionState,
    functions: Arc<Functions>,
    relations: Vec<Arc<dyn RelationPlanner>>,
}

impl<'a> Planner<'a> {
    /// `exposed` names the virtual columns of each loaded table that the statement uses.
    pub(crate) fn new(state: &'a SessionState, loaded: Vec<Loaded>, exposed: Vec<BTreeSet<String>>) -> Self {
        Self { state, functions: Functions::of(state), relations: vec![Arc::new(Slots { loaded, exposed })] }
    }

    pub(crate) fn plan(&self, statement: ast::Statement) -> Result<LogicalPlan> {
        membership::three_valued(self.sql().sql_statement_to_plan(statement)?)
    }

    /// An expression over `schema`, with types made to fit and constants folded.
    pub(crate) fn expression(&self, expr: ast::Expr, schema: &DFSchema) -> Result<Expr> {
        let planned = self.sql().sql_to_expr(expr, schema, &mut PlannerContext::new())?;
        let simplifier = self.simplifier();
        simplifier.simplify(simplifier.coerce(planned, schema)?)
    }

    /// The value of an expression without columns.
    pub(crate) fn constant(&self, expr: &ast::Expr) -> Result<ScalarValue> {
        match self.expression(expr.clone(), &DFSchema::empty())? {
            Expr::Literal(value, _) => Ok(value),
            other => plan_err!("`{other}` is not a constant"),
        }
    }

    fn sql(&self) -> SqlToRel<'_, Self> {
        let options = ParserOptions::from(&self.state.config_options().sql_parser);
        SqlToRel::new_with_options(self, options.with_enable_ident_normalization(false))
    }

    fn simplifier(&self) -> ExprSimplifier {
        let context = SimplifyContext::builder()
            .with_config_options(Arc::clone(self.state.config_options()))
            .with_query_execution_start_time(self.state.execution_props().query_execution_start_time)
            .build();
        ExprSimplifier::new(context)
    }
}

/// Hands the planner what was loaded into a reference's slot.
#[derive(Debug)]
struct Slots {
    loaded: Vec<Loaded>,
    exposed: Vec<BTreeSet<String>>,
}

impl RelationPlanner for Slots {
    fn plan_relation(
        &self,
        relation: TableFactor,
        _context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { alias, with_hints, version, .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let Some(slot) = slot_of(with_hints) else {
            return match version {
                None => Ok(RelationPlanning::Original(Box::new(relation))),
                Some(version) => plan_err!("nobody read the version `{version}`"),
            };
        };
        let (Some(loaded), Some(exposed)) = (self.loaded.get(slot), self.exposed.get(slot)) else {
            return plan_err!("`{relation}` was not loaded");
        };
        let source = provider_as_source(Arc::clone(&loaded.provider));
        let projection = projection(&loaded.provider.schema(), exposed);
        let plan = LogicalPlanBuilder::scan(loaded.reference.clone(), source, projection)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

/// The columns of a table without the virtual ones nobody names; `None` is all.
fn projection(schema: &SchemaRef, exposed: &BTreeSet<String>) -> Option<Vec<usize>> {
    let shown = |it: &arrow_schema::Field| !it.metadata().contains_key(VIRTUAL) || exposed.contains(it.name());
    let shown: Vec<usize> = schema.fields().iter().enumerate().filter(|it| shown(it.1)).map(|it| it.0).collect();
    (shown.len() < schema.fields().len()).then_some(shown)
}

impl ContextProvider for Planner<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        plan_err!("table `{name}` was not loaded")
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
        let name = name.to_lowercase();
        let Some(function) = self.state.table_functions().get(&name) else {
            return plan_err!("table function `{name}` not found");
        };
        let simplifier = self.simplifier();
        let fold = |it| simplifier.coerce(it, &DFSchema::empty()).and_then(|it| simplifier.simplify(it));
        let args = args.into_iter().map(fold).collect::<Result<Vec<_>>>()?;
        let provider = function.create_table_provider_with_args(TableFunctionArgs::new(&args, self.state))?;
        Ok(provider_as_source(provider))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.state.expr_planners()
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relations
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        None
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.functions.scalar(name)
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.functions.higher_order(name)
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.functions.aggregate(name)
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.functions.window(name)
    }

    fn get_variable_type(&self, names: &[String]) -> Option<DataType> {
        if names.is_empty() {
            return None;
        }
        let kind = if is_system_variables(names) { VarType::System } else { VarType::UserDefined };
        self.state.execution_props().get_var_provider(kind).and_then(|it| it.get_type(names))
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.functions.scalar_names()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.functions.higher_order_names()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.functions.aggregate_names()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.functions.window_names()
    }
}

/// What the planner found wrong with an expression that stands alone, in our terms.
pub(crate) fn planned<T>(result: Result<T, DataFusionError>) -> lakebed_core::Result<T> {
    result.map_err(crate::error::of_datafusion)
}
