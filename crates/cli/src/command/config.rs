//! `config list`: every setting, its value, and where that comes from.
use crate::{
    args::{ConfigAction, ConfigArgs},
    door::Door,
    failure::{Failure, Verdict},
    report::{Column, Kind, Report, Value},
};

pub(crate) fn run(door: &Door, args: &ConfigArgs) -> Result<Verdict, Failure> {
    let ConfigAction::List { show_origin } = args.action;
    let mut columns = vec![
        Column::new("key", "KEY", Kind::Text),
        Column::new("value", "VALUE", Kind::Text),
        Column::new("origin", "ORIGIN", Kind::Text),
    ];
    if !show_origin {
        columns.pop();
    }
    let mut report = Report::new("lakebed.config/1", "", &columns);
    for (key, entry) in door.lake.config().entries() {
        // Secrets are in here by reference only, so every value can be shown.
        let value = Value::from(entry.as_ref().map(|it| it.value.replace('\n', ", ")));
        let mut row = vec![Value::from(key.name), value];
        if show_origin {
            row.push(Value::from(entry.map(|it| it.origin.to_string())));
        }
        report.rows.push(row);
    }
    door.report(report)?;
    Ok(Verdict::Yes)
}
