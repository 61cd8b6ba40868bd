//! Thirty-two nodes on one machine.

use crate::stage::Stage;

#[test]
fn thirty_two_nodes_snapshot_lose_one_and_go_on() {
    let stage = Stage::alone();
    // A ring and 32 further channels; each account pays ten times a second, so that some eighty
    // payments are under way at any moment.
    let scenario = r#"
timeout = "150s"
[job]
processes = 32
topology = { kind = "random", edges = 32, seed = 5 }
seed = 5
delay = "250ms"
[job.application]
name = "bank"
every_ms = 100
[job.snapshots]
interval = "0s"
[[step]]
do = "snapshot"
wait = true
[[step]]
do = "snapshot"
from = ["p7", "p30"]
wait = true
[[step]]
do = "kill"
process = "p17"
[[step]]
do = "wait"
for = { lost = "p17", joined = "p17", running = true }
timeout = "60s"
[[step]]
do = "snapshot"
wait = true
[[step]]
do = "kill"
process = ["collector", "p1"]
[[step]]
do = "wait"
for = { joined = "p1", running = true }
timeout = "60s"
[[step]]
do = "snapshot"
wait = true
[[step]]
do = "expect"
that = { snapshots = 4, restores = 2, verdicts = "hold", quantities = { money = 32000 } }
"#;
    let ran = stage.run("many", scenario).ok();
    println!(
        "{} messages in channels of four snapshots",
        ran.in_transit()
    );
}
