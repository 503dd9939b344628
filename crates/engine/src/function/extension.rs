//! Functions that formats register as data: the first argument is the table, the rest their parameters.
use std::{collections::BTreeMap, sync::Arc};

use datafusion::{catalog::TableProvider, datasource::MemTable};
use lakebed_core::{
    Error, Result,
    extension::{Arguments, Extension},
};

use super::{Call, VERSION_ARGUMENTS, one_pin};
use crate::{
    error::of_datafusion,
    sql::{resolve::Loader, wanted::Argument},
};

pub(super) async fn load(
    loader: &mut Loader<'_>,
    format: &str,
    function: Extension,
    arguments: &[Argument],
) -> Result<Arc<dyn TableProvider>> {
    let mut positional = vec!["table"];
    positional.extend(function.parameters.iter().map(|it| it.name));
    let named: Vec<&str> = VERSION_ARGUMENTS.into_iter().filter(|it| !positional.contains(it)).collect();
    let call = Call::new(function.name, arguments, &positional, &named, loader)?;
    let (table, rev) = loader.table(call.text("table")?, Some(format)).await?;
    if table.format().name() != format {
        return Err(Error::invalid(format!(
            "{}(…) reads {format} tables; this is a {} table",
            function.name,
            table.format()
        )));
    }
    let mut values = BTreeMap::new();
    for parameter in function.parameters {
        match call.scalar(parameter.name)? {
            Some(value) => drop(values.insert(parameter.name.to_owned(), value)),
            None if parameter.required => drop(call.required(parameter.name)?),
            None => (),
        }
    }
    let own_pin = if named.len() == VERSION_ARGUMENTS.len() { call.pin(loader)? } else { None };
    let as_of = match one_pin(rev, own_pin)? {
        Some(pin) => Some(loader.as_of(&table, Some(pin)).await?),
        None => None,
    };
    let rows = function.rows.rows(&table, &Arguments { values, as_of }).await?;
    let table = MemTable::try_new(Arc::clone(&function.schema), vec![rows]).map_err(of_datafusion)?;
    Ok(Arc::new(table))
}
