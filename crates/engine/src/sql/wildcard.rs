//! `*`, USING and NATURAL never see virtual columns.
//!
//! A relation has a virtual column only where the statement names it; there, `*` must leave it out. `EXCLUDE` does
//! that as long as the name is the relation's alone; where another relation has such a column, too, `*` becomes
//! `a.* EXCLUDE (…), b.*`.
use std::collections::BTreeSet;

use lakebed_core::{Error, Result};
use sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Select, SelectItem,
    SelectItemQualifiedWildcardKind, Value, WildcardAdditionalOptions,
};

use super::{
    names::Names,
    parse::{plain, quoted},
    scope::{Column, Relation, Scope, Search},
};

/// Spells `t` in `t.*` and the columns its options name.
pub(super) fn bind_qualified(
    names: &mut Names<'_>,
    kind: &mut SelectItemQualifiedWildcardKind,
    options: &mut WildcardAdditionalOptions,
) -> Result<()> {
    let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else { return Ok(()) };
    let parts = plain(name);
    let qualifier: Vec<_> = parts.iter().map(String::as_str).collect();
    let relation = names.scope().relation(&qualifier)?.cloned();
    if let Some(relation) = &relation {
        let spelled = &relation.qualifier[relation.qualifier.len() - parts.len()..];
        *name = object_name(spelled);
    }
    bind_options(names, relation.as_ref(), options)
}

/// Spells the columns that EXCLUDE, EXCEPT and REPLACE name.
pub(super) fn bind_options(
    names: &mut Names<'_>,
    of: Option<&Relation>,
    options: &mut WildcardAdditionalOptions,
) -> Result<()> {
    if let Some(exclude) = &mut options.opt_exclude {
        let listed = match exclude {
            ExcludeSelectItem::Single(name) => std::slice::from_mut(name),
            ExcludeSelectItem::Multiple(names) => names.as_mut_slice(),
        };
        for name in listed {
            if let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice() {
                spell(names.scope(), of, ident)?;
            }
        }
    }
    if let Some(except) = &mut options.opt_except {
        spell(names.scope(), of, &mut except.first_element)?;
        for ident in &mut except.additional_elements {
            spell(names.scope(), of, ident)?;
        }
    }
    if let Some(replace) = &mut options.opt_replace {
        for item in &mut replace.items {
            spell(names.scope(), of, &mut item.column_name)?;
            names.visit(&mut item.expr)?;
        }
    }
    Ok(())
}

fn spell(scope: &Scope, of: Option<&Relation>, ident: &mut Ident) -> Result<()> {
    let search = match of {
        Some(relation) => relation.column(&ident.value)?,
        None => scope.bare(&ident.value)?,
    };
    match search {
        Search::Found(found) if found.hidden.is_empty() => {
            *ident = quoted(&found.name);
            Ok(())
        }
        Search::Found(found) => {
            Err(Error::invalid(format!("`{}` is a virtual column: * does not have it", found.name)))
        }
        Search::Open | Search::Absent => Ok(()),
    }
}

/// The columns that `*` or `t.*` makes; `None` if they are not known before planning.
pub(super) fn columns(item: &SelectItem, scope: &Scope) -> Result<Option<Vec<Column>>> {
    let (relations, options) = match item {
        SelectItem::Wildcard(options) => (scope.relations.iter().collect::<Vec<_>>(), options),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
            let parts = plain(name);
            let qualifier: Vec<_> = parts.iter().map(String::as_str).collect();
            (scope.relation(&qualifier)?.into_iter().collect(), options)
        }
        _ => return Ok(None),
    };
    if relations.is_empty() {
        return Ok(None);
    }
    let excluded = excluded(options);
    let mut columns: Vec<Column> = Vec::new();
    for relation in relations {
        let Some(visible) = relation.visible() else { return Ok(None) };
        for column in visible.filter(|it| !excluded.contains(&it.name)) {
            // A column that USING merged comes once.
            if !(scope.merged && columns.contains(column)) {
                columns.push(column.clone());
            }
        }
    }
    Ok(Some(columns))
}

fn excluded(options: &WildcardAdditionalOptions) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => names.extend(plain(name)),
        Some(ExcludeSelectItem::Multiple(listed)) => names.extend(listed.iter().flat_map(plain)),
        None => (),
    }
    if let Some(except) = &options.opt_except {
        names.insert(except.first_element.value.clone());
        names.extend(except.additional_elements.iter().map(|it| it.value.clone()));
    }
    names
}

/// Takes exposed virtual columns out of the wildcards of a select list, once all of it was walked.
pub(super) fn hide(select: &mut Select, scope: &Scope, exposed: &[BTreeSet<String>]) -> Result<()> {
    let of = |it: &Relation| it.slot.and_then(|slot| exposed.get(slot)).cloned().unwrap_or_default();
    let all: BTreeSet<String> = scope.relations.iter().flat_map(of).collect();
    if all.is_empty() {
        return Ok(());
    }
    let shared = all.iter().find(|name| scope.relations.iter().filter(|it| has(it, &of(it), name)).count() > 1);
    let mut items = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match (item, shared) {
            (SelectItem::Wildcard(mut options), None) => {
                exclude(&mut options, &all);
                items.push(SelectItem::Wildcard(options));
            }
            (SelectItem::Wildcard(options), Some(name)) => {
                if scope.merged || !is_plain(&options) {
                    return Err(apart(name));
                }
                for relation in &scope.relations {
                    if relation.qualifier.is_empty() {
                        return Err(apart(name));
                    }
                    let kind = SelectItemQualifiedWildcardKind::ObjectName(object_name(&relation.qualifier));
                    let mut options = options.clone();
                    exclude(&mut options, &of(relation));
                    items.push(SelectItem::QualifiedWildcard(kind, options));
                }
            }
            (SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), mut options), _) => {
                let parts = plain(&name);
                let qualifier: Vec<_> = parts.iter().map(String::as_str).collect();
                if let Some(relation) = scope.relation(&qualifier)? {
                    exclude(&mut options, &of(relation));
                }
                let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
                items.push(SelectItem::QualifiedWildcard(kind, options));
            }
            (other, _) => items.push(other),
        }
    }
    select.projection = items;
    Ok(())
}

fn has(relation: &Relation, exposed: &BTreeSet<String>, name: &str) -> bool {
    exposed.contains(name) || relation.columns.iter().flat_map(|it| it.iter()).any(|it| !it.hidden && it.name == name)
}

fn apart(name: &str) -> Error {
    Error::unsupported(format!("* cannot leave out the virtual column `{name}` of one relation and keep another's"))
        .with_hint("list the columns, or give every subquery an alias")
}

fn exclude(options: &mut WildcardAdditionalOptions, names: &BTreeSet<String>) {
    if names.is_empty() {
        return;
    }
    let mut listed = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => Vec::new(),
    };
    listed.extend(names.iter().map(|it| object_name(std::slice::from_ref(it))));
    options.opt_exclude = Some(ExcludeSelectItem::Multiple(listed));
}

/// A name of these parts, each quoted.
pub(super) fn object_name(parts: &[String]) -> ObjectName {
    ObjectName(parts.iter().map(|it| ObjectNamePart::Identifier(quoted(it))).collect())
}

/// The constraint of a join, if it has one.
pub(super) fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(it)
        | JoinOperator::Inner(it)
        | JoinOperator::Left(it)
        | JoinOperator::LeftOuter(it)
        | JoinOperator::Right(it)
        | JoinOperator::RightOuter(it)
        | JoinOperator::FullOuter(it)
        | JoinOperator::CrossJoin(it)
        | JoinOperator::Semi(it)
        | JoinOperator::LeftSemi(it)
        | JoinOperator::RightSemi(it)
        | JoinOperator::Anti(it)
        | JoinOperator::LeftAnti(it)
        | JoinOperator::RightAnti(it)
        | JoinOperator::AsOf { constraint: it, .. }
        | JoinOperator::StraightJoin(it) => Some(it),
        JoinOperator::CrossApply
        | JoinOperator::OuterApply
        | JoinOperator::ArrayJoin
        | JoinOperator::LeftArrayJoin
        | JoinOperator::InnerArrayJoin => None,
    }
}

/// Spells the columns of USING; NATURAL becomes USING over the visible columns of one name.
///
/// `left` is how many of the scope's relations stand left of the join.
pub(super) fn bind_join(scope: &Scope, left: usize, constraint: &mut JoinConstraint) -> Result<()> {
    let side = |relations: &[Relation]| Scope { relations: relations.to_vec(), ..Scope::default() };
    let (left, right) = (side(&scope.relations[..left]), side(&scope.relations[left..]));
    match constraint {
        JoinConstraint::Using(listed) => {
            for name in listed {
                let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice() else { continue };
                match (left.bare(&ident.value)?, right.bare(&ident.value)?) {
                    (Search::Found(one), Search::Found(two)) if one.name == two.name && one.hidden.is_empty() => {
                        *ident = quoted(&one.name);
                    }
                    (Search::Found(one), Search::Found(two)) => return Err(no_using(&one.name, &two.name)),
                    _ => (),
                }
            }
            Ok(())
        }
        JoinConstraint::Natural => natural(&left, &right, constraint),
        JoinConstraint::On(_) | JoinConstraint::None => Ok(()),
    }
}

fn natural(left: &Scope, right: &Scope, constraint: &mut JoinConstraint) -> Result<()> {
    let mut common = Vec::new();
    for relation in &right.relations {
        let Some(columns) = relation.visible() else { return Ok(()) };
        for column in columns {
            match left.bare(&column.name)? {
                Search::Found(found) if !found.hidden.is_empty() => (),
                Search::Found(found) if found.name == column.name => common.push(column.name.clone()),
                Search::Found(found) => return Err(no_using(&found.name, &column.name)),
                Search::Open => return Ok(()),
                Search::Absent => (),
            }
        }
    }
    *constraint = match common.as_slice() {
        [] => JoinConstraint::On(Expr::value(Value::Boolean(true))),
        names => JoinConstraint::Using(names.iter().map(|it| object_name(std::slice::from_ref(it))).collect()),
    };
    Ok(())
}

fn no_using(one: &str, two: &str) -> Error {
    let what = if one == two { "a virtual column" } else { "spelled in two ways" };
    Error::unsupported(format!("USING and NATURAL cannot join `{one}` with `{two}`: it is {what}"))
        .with_hint(format!("write ON a.\"{one}\" = b.\"{two}\""))
}

/// After a semi or anti join only one side is there.
pub(super) fn keep_preserved(scope: &mut Scope, left: usize, operator: &JoinOperator) {
    match operator {
        JoinOperator::Semi(_) | JoinOperator::LeftSemi(_) | JoinOperator::Anti(_) | JoinOperator::LeftAnti(_) => {
            scope.relations.truncate(left);
        }
        JoinOperator::RightSemi(_) | JoinOperator::RightAnti(_) => drop(scope.relations.drain(..left)),
        _ => (),
    }
}

fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    opt_ilike.is_none()
        && opt_exclude.is_none()
        && opt_except.is_none()
        && opt_replace.is_none()
        && opt_rename.is_none()
        && opt_alias.is_none()
}
