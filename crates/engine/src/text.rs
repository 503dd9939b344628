//! Small things about names that people type.

/// The name that was probably meant: one that differs by case, or by few letters.
pub(crate) fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Far longer names are no typing mistakes, and comparing them costs.
    const LONGEST: usize = 64;
    let typed: Vec<char> = typed.to_lowercase().chars().take(LONGEST).collect();
    let most = typed.len().div_ceil(3).clamp(1, 3);
    let near = names.into_iter().filter(|it| it.len() <= 2 * LONGEST);
    let near = near.map(|it| (distance(&typed, &it.to_lowercase().chars().take(LONGEST).collect::<Vec<_>>()), it));
    near.filter(|it| it.0 <= most).min_by_key(|it| it.0).map(|it| it.1)
}

/// How many letters must be put in, taken out or changed.
fn distance(one: &[char], two: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, b) in two.iter().enumerate() {
            let change = corner + usize::from(a != b);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[two.len()]
}

/// Matches with `any` for any run of characters and `one` for one; linear but for the last `any`.
pub(crate) fn glob(text: &[char], pattern: &[char], any: char, one: char) -> bool {
    let (mut t, mut p) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(it) if *it == any => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(it) if *it == one || *it == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((after, from)) => {
                    retry = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|it| *it == any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        assert_eq!(did_you_mean("oders", ["customers", "orders"]), Some("orders"));
        assert_eq!(did_you_mean("ID", ["id", "ix"]), Some("id"));
        assert_eq!(did_you_mean("price", ["quantity"]), None);
        assert_eq!(did_you_mean("", ["a"]), Some("a"));
    }

    #[test]
    fn patterns_match() {
        for (text, pattern, expected) in [
            ("orders", "or%", true),
            ("orders", "o_ders", true),
            ("orders", "%ers", true),
            ("orders", "%xrs", false),
            ("", "%", true),
            ("", "_", false),
            ("aaaaaaaab", "%a%a%b", true),
        ] {
            let chars = |it: &str| it.chars().collect::<Vec<_>>();
            assert_eq!(glob(&chars(text), &chars(pattern), '%', '_'), expected, "{text} LIKE {pattern}");
        }
    }
}
