//! "Did you mean": the closest of some names.

/// The name nearest to `wanted`, if it is near enough to be a slip: up to a third of the letters differ.
pub fn closest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = wanted.to_lowercase();
    let limit = (wanted.chars().count() / 3).max(1);
    let scored = names.into_iter().map(|it| (distance(&folded, &it.to_lowercase()), it));
    scored.filter(|(far, _)| *far <= limit).min_by_key(|(far, _)| *far).map(|(_, it)| it)
}

/// Insertions, deletions, replacements and swaps of neighbours between two texts.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(100).collect(), b.chars().take(100).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = last;
        last = row;
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let names = ["orders", "customers", "line_items"];
        let cases = [
            ("order", Some("orders")),
            ("ORDERS", Some("orders")),
            ("odrers", Some("orders")),
            ("costumers", Some("customers")),
            ("xyz", None),
        ];
        for (wanted, expected) in cases {
            assert_eq!(closest(wanted, names), expected, "{wanted}");
        }
    }
}
