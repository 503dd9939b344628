//! How much memory queries may have where nobody says: half of what this process can get.
//!
//! That is the machine's memory, or less where a control group allows less.

/// Where neither can be learned.
const UNKNOWN: u64 = 4 << 30;

/// Bytes.
pub(crate) fn default_limit() -> u64 {
    let group = read("/sys/fs/cgroup/memory.max").and_then(|it| it.trim().parse().ok());
    let machine = read("/proc/meminfo").and_then(|it| total(&it));
    [group, machine].into_iter().flatten().min().unwrap_or(UNKNOWN) / 2
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// `MemTotal:  16384 kB` as bytes.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|it| it.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_how_much_it_has() {
        assert_eq!(total("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
        assert_eq!(total("MemFree: 1 kB"), None);
        assert!(default_limit() > 0);
    }
}
