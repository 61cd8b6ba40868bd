//! Transcripts: small jobs, one choice at a time, with everything that follows written beside it.
//! They read as documentation of the protocol; `REWRITE=1` writes them anew, and a rewritten file
//! is committed only when every changed line is understood.

#![allow(
    clippy::unwrap_used,
    reason = "a transcript that cannot go on is to fail"
)]

mod stage;

use stage::Stage;

#[test]
fn transcripts() {
    datadriven::walk("tests/transcripts/data", |file| {
        let mut stage = None;
        file.run(|case| -> String {
            match case.directive.as_str() {
                "job" => {
                    let begun = Stage::begin(&case.input);
                    let text = begun.1;
                    stage = Some(begun.0);
                    text
                }
                "do" => stage.as_mut().expect("a job first").perform(&case.input),
                other => panic!("a case is `job` or `do`, not `{other}`"),
            }
        });
    });
}
