//! What the demo tells, in order.

/// One step.
pub(super) enum Step {
    /// A sentence.
    Say(&'static str),
    /// A command that must succeed.
    Run(&'static [&'static str]),
    /// A command that must fail with this exit code.
    Refused(u8, &'static [&'static str]),
    /// The story's clock goes on, to this many hours after its start.
    Hour(i64),
    /// The newest checkpoint is cut in half.
    Damage,
}
use Step::{Damage, Hour, Refused, Run, Say};

pub(super) const STORY: &[Step] = &[
    Say("A shop keeps its orders in a Delta table, which it makes first. The amount of an order is never below zero:"),
    Run(&[
        "sql",
        "-c",
        "CREATE TABLE orders (order_id BIGINT NOT NULL, customer STRING, status STRING, \
         amount DECIMAL(10,2), ordered_on DATE, CONSTRAINT no_debts CHECK (amount >= 0)) \
         TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
    ]),
    Hour(1),
    Run(&[
        "sql",
        "-c",
        "INSERT INTO orders VALUES (1, 'Ada', 'paid', 40.00, DATE '2026-11-02'), \
         (2, 'Grace', 'paid', 12.50, DATE '2026-11-02'), (3, 'Edsger', 'open', 99.90, DATE '2026-11-02')",
    ]),
    Hour(26),
    Run(&[
        "sql",
        "-c",
        "INSERT INTO orders VALUES (4, 'Barbara', 'open', 150.00, DATE '2026-11-03'), \
         (5, 'Tony', 'cancelled', 8.75, DATE '2026-11-03')",
    ]),
    Say("A row that breaks the rule is refused as a whole, and by name:"),
    Refused(2, &["sql", "-c", "INSERT INTO orders VALUES (6, 'Frances', 'open', -31.00, DATE '2026-11-04')"]),
    Hour(50),
    Run(&["sql", "-c", "UPDATE orders SET status = 'paid' WHERE order_id = 3"]),
    Say(
        "The books of the week are closed: a tag keeps this version. Delta has no tags, so the table gets what they need:",
    ),
    Hour(74),
    Run(&["tag", "create", "books", "orders", "--upgrade"]),
    Say("Cancelled orders shall go. But somebody types the wrong word:"),
    Hour(99),
    Run(&["sql", "-c", "DELETE FROM orders WHERE status = 'paid'"]),
    Say("Every paid order is missing. The log says what happened, newest first:"),
    Hour(120),
    Run(&["log", "orders"]),
    Say("Nothing is lost: every version is still there. These rows were in version 4 and are not in version 5:"),
    Run(&[
        "sql",
        "-c",
        "SELECT * FROM orders VERSION AS OF 4 EXCEPT SELECT * FROM orders VERSION AS OF 5 \
         ORDER BY order_id",
    ]),
    Say("And which version did a report of the morning of the 6th see?"),
    Run(&["at", "orders", "2026-11-06 08:00"]),
    Say("The rows of the tag come back, as a new version; what happened in between stays in the log:"),
    Hour(123),
    Run(&["restore", "orders@books"]),
    Hour(170),
    Run(&["sql", "-c", "DELETE FROM orders WHERE status = 'cancelled'"]),
    Run(&["sql", "-c", "SELECT count(*) AS orders, sum(amount) AS total FROM orders"]),
    Say("Two months later the small files are rewritten, and what nobody needs any more shall go. First the plan:"),
    Hour(1_440),
    Run(&["compact", "orders"]),
    Hour(1_700),
    Run(&["vacuum", "orders"]),
    Run(&["vacuum", "orders", "--apply"]),
    Say("Old versions have lost their files. The tag kept its own, and the books of the week can still be read:"),
    Run(&["log", "orders", "--columns", "id,operation,refs,readable"]),
    Run(&["sql", "-c", "SELECT * FROM orders@books ORDER BY order_id"]),
    Say("Last, a disk cuts a checkpoint in half:"),
    Run(&["checkpoint", "orders"]),
    Damage,
    Run(&["sql", "-c", "SELECT count(*) AS orders, sum(amount) AS total FROM orders"]),
    Say("The log rebuilt what the checkpoint held, and the answer is right. The doctor says what to mend:"),
    Run(&["doctor", "orders"]),
];
