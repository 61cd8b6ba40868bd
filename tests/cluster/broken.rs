//! Streams of real processes that a scenario breaks.

use crate::stage::Stage;

#[test]
fn a_broken_stream_is_opened_again_and_loses_nothing() {
    let ran = Stage::new()
        .run(
            "broken",
            "timeout = \"60s\"\n[job]\nprocesses = 3\ntopology = \"ring\"\n\
             [job.application]\nname = \"bank\"\n[job.snapshots]\ninterval = \"100ms\"\n\
             [[step]]\ndo = \"wait\"\nfor = { running = true, snapshots = 1 }\n\
             [[step]]\ndo = \"break\"\nfrom = \"p1\"\nto = \"p2\"\n\
             [[step]]\ndo = \"break\"\nfrom = \"p3\"\nto = \"p1\"\ntogether = true\n\
             [[step]]\ndo = \"snapshot\"\nwait = true\n\
             [[step]]\ndo = \"break\"\nfrom = \"p1\"\nto = \"p2\"\n\
             [[step]]\ndo = \"snapshot\"\nwait = true\n\
             [[step]]\ndo = \"expect\"\n\
             that = { restores = 0, verdicts = \"hold\", quantities = { money = 3000 } }\n",
        )
        .ok();
    assert_eq!(ran.count("lost"), 0, "{ran}");
}
