//! DataFusion's functions, made when a statement first asks for one.
//!
//! There are some four hundred, and most statements call none or a few. Making them all touches code and memory that a
//! small statement would never need. So the commonest aggregates are known by name, and any other name makes all.
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
};

use datafusion::{
    execution::{SessionState, SessionStateDefaults},
    functions_aggregate::{average::avg_udaf, count::count_udaf, min_max::max_udaf, min_max::min_udaf, sum::sum_udaf},
    logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF},
};

use crate::{bounded, variant};

/// The functions of a session, reached through its configuration.
pub(crate) struct Functions {
    memory_limit: Option<usize>,
    all: OnceLock<All>,
}

/// By name and alias.
struct All {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    higher_order: HashMap<String, Arc<HigherOrderUDF>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
    window: HashMap<String, Arc<WindowUDF>>,
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions").field("made", &self.all.get().is_some()).finish_non_exhaustive()
    }
}

impl Functions {
    /// `memory_limit` is the session's, in bytes.
    pub(crate) fn new(memory_limit: Option<usize>) -> Self {
        Self { memory_limit, all: OnceLock::new() }
    }

    /// Those of a session.
    pub(crate) fn of(state: &SessionState) -> Arc<Self> {
        state.config().get_extension().expect("every session is made with its functions")
    }

    pub(crate) fn scalar(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        // Asked first for every call; an aggregate that is known is no scalar function.
        match known_aggregate(name) {
            Some(_) => None,
            None => self.all().scalar.get(name).cloned(),
        }
    }

    pub(crate) fn higher_order(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        match known_aggregate(name) {
            Some(_) => None,
            None => self.all().higher_order.get(name).cloned(),
        }
    }

    pub(crate) fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        known_aggregate(name).or_else(|| self.all().aggregate.get(name).cloned())
    }

    pub(crate) fn window(&self, name: &str) -> Option<Arc<WindowUDF>> {
        match known_aggregate(name) {
            Some(_) => None,
            None => self.all().window.get(name).cloned(),
        }
    }

    /// Every name and alias, in order.
    pub(crate) fn scalar_names(&self) -> Vec<String> {
        sorted(self.all().scalar.keys())
    }

    /// Every name and alias, in order.
    pub(crate) fn higher_order_names(&self) -> Vec<String> {
        sorted(self.all().higher_order.keys())
    }

    /// Every name and alias, in order.
    pub(crate) fn aggregate_names(&self) -> Vec<String> {
        sorted(self.all().aggregate.keys())
    }

    /// Every name and alias, in order.
    pub(crate) fn window_names(&self) -> Vec<String> {
        sorted(self.all().window.keys())
    }

    fn all(&self) -> &All {
        self.all.get_or_init(|| All::make(self.memory_limit))
    }
}

impl All {
    fn make(memory_limit: Option<usize>) -> Self {
        let mut scalar = HashMap::new();
        let add = |scalar: &mut HashMap<_, _>, it: Arc<ScalarUDF>| {
            scalar.extend(names(it.name(), it.aliases()).map(|name| (name, Arc::clone(&it))));
        };
        for function in SessionStateDefaults::default_scalar_functions() {
            add(&mut scalar, function);
        }
        // Ours stand in the place of those they bound or are called as.
        for function in variant::functions().into_iter().chain(bounded::functions(&scalar, memory_limit)) {
            add(&mut scalar, Arc::new(function));
        }
        let higher_order = SessionStateDefaults::default_higher_order_functions().into_iter();
        let aggregate = SessionStateDefaults::default_aggregate_functions().into_iter();
        let window = SessionStateDefaults::default_window_functions().into_iter();
        Self {
            scalar,
            higher_order: higher_order.flat_map(|it| by_name(it.name(), it.aliases(), &it)).collect(),
            aggregate: aggregate.flat_map(|it| by_name(it.name(), it.aliases(), &it)).collect(),
            window: window.flat_map(|it| by_name(it.name(), it.aliases(), &it)).collect(),
        }
    }
}

fn known_aggregate(name: &str) -> Option<Arc<AggregateUDF>> {
    Some(match name {
        "count" => count_udaf(),
        "sum" => sum_udaf(),
        "min" => min_udaf(),
        "max" => max_udaf(),
        "avg" => avg_udaf(),
        _ => return None,
    })
}

fn names<'a>(name: &'a str, aliases: &'a [String]) -> impl Iterator<Item = String> + use<'a> {
    std::iter::once(name.to_owned()).chain(aliases.iter().cloned())
}

fn by_name<T>(name: &str, aliases: &[String], function: &Arc<T>) -> Vec<(String, Arc<T>)> {
    names(name, aliases).map(|it| (it, Arc::clone(function))).collect()
}

fn sorted<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names: Vec<_> = names.cloned().collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_aggregates_are_those_and_nothing_else() {
        let all = All::make(None);
        for name in ["count", "sum", "min", "max", "avg"] {
            let known = known_aggregate(name).expect("it is known");
            assert_eq!(all.aggregate.get(name), Some(&known), "{name}");
            assert!(!all.scalar.contains_key(name) && !all.higher_order.contains_key(name), "{name}");
            assert!(!all.window.contains_key(name), "{name}");
        }
    }

    #[test]
    fn a_small_statement_makes_few() {
        let functions = Functions::new(None);
        assert!(functions.scalar("count").is_none() && functions.window("count").is_none());
        assert!(functions.aggregate("count").is_some());
        assert!(functions.all.get().is_none(), "{functions:?}");
        assert!(functions.scalar("lower").is_some());
    }
}
