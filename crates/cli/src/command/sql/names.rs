//! What the prompt can complete: keywords, schemas, tables, and the columns of the tables that were used.
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use rustyline::{
    Context, Helper, completion::Completer, highlight::Highlighter, hint::Hinter, validate::ValidationContext,
    validate::ValidationResult, validate::Validator,
};

use super::end::is_whole;

const KEYWORDS: &[&str] = &[
    "ALL",
    "AND",
    "AS",
    "ASC",
    "AT",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COUNT",
    "CREATE",
    "CROSS",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DETAIL",
    "DISTINCT",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FILTER",
    "FOR",
    "FROM",
    "FULL",
    "GROUP BY",
    "HAVING",
    "HISTORY",
    "IN",
    "INNER",
    "INSERT INTO",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER BY",
    "OUTER",
    "OVER",
    "PARTITION BY",
    "RIGHT",
    "SELECT",
    "SET",
    "SHOW",
    "SHOW CREATE TABLE",
    "SHOW TABLES",
    "SUM",
    "SYSTEM_TIME AS OF",
    "THEN",
    "TIMESTAMP AS OF",
    "TRUE",
    "UNION",
    "UPDATE",
    "USING",
    "VALUES",
    "VERSION AS OF",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Names learned so far; shared with the prompt.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(Arc<Mutex<BTreeSet<String>>>);

impl Names {
    pub(super) fn learn(&self, names: impl IntoIterator<Item = String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
    }

    /// Known names that go on from `start`, which matches without case.
    fn continuing(&self, start: &str) -> Vec<String> {
        let folded = start.to_lowercase();
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.iter().filter(|it| it.to_lowercase().starts_with(&folded)).cloned();
        let words = KEYWORDS.iter().filter(|it| it.to_lowercase().starts_with(&folded));
        // Whoever types small letters wants small keywords.
        let small = start.chars().next().is_some_and(char::is_lowercase);
        let words = words.map(|it| if small { it.to_lowercase() } else { (*it).to_owned() });
        known.chain(words).collect()
    }
}

/// The prompt's helper: completes, and reads on until a statement is whole.
#[derive(Debug, Default)]
pub(super) struct Assist {
    pub(super) names: Names,
}

impl Completer for Assist {
    type Candidate = String;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..position).unwrap_or(line);
        let word = |it: char| it.is_alphanumeric() || matches!(it, '_' | '.' | '\\');
        let start = before.char_indices().rev().take_while(|(_, it)| word(*it)).last().map_or(before.len(), |it| it.0);
        let typed = &before[start..];
        if typed.is_empty() {
            return Ok((position, Vec::new()));
        }
        Ok((start, self.names.continuing(typed)))
    }
}

impl Validator for Assist {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let command = text.trim_start().starts_with('\\');
        Ok(if command || is_whole(text) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for Assist {
    type Hint = String;
}
impl Highlighter for Assist {}
impl Helper for Assist {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_on_in_the_case_they_began() {
        let names = Names::default();
        names.learn(["orders".to_owned(), "Ordinal".to_owned()]);
        assert_eq!(names.continuing("ord"), ["Ordinal", "orders", "order by"]);
        assert_eq!(names.continuing("SEL"), ["SELECT"]);
        assert!(names.continuing("zzz").is_empty());
    }
}
