//! Which test is to kill which wrong protocol.

use std::fmt;

use cutline::protocol::mutant::Mutant::{self, *};

/// A wrong protocol and a test that must fail on it.
pub(crate) struct Kill {
    pub(crate) mutant: Mutant,
    pub(crate) program: &'static str,
    pub(crate) test: &'static str,
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.program, self.test)
    }
}

const fn model(mutant: Mutant, test: &'static str) -> Kill {
    Kill {
        mutant,
        program: "model",
        test,
    }
}

const fn protocol(mutant: Mutant, test: &'static str) -> Kill {
    Kill {
        mutant,
        program: "protocol",
        test,
    }
}

/// One test for each; the model checker's where it sees it.
pub(crate) const KILLS: &[Kill] = &[
    model(RecordsLate, "fork_classic_twice"),
    model(ForgetsChannel, "ring_classic"),
    model(LogsBehindMarker, "ring_classic"),
    model(ForgetsInbox, "ring_classic"),
    model(ForgetsOvertakenInput, "ring_unaligned"),
    model(ForgetsBackEdge, "ring_aligned"),
    model(DropsSenderShare, "ring_unaligned"),
    model(ReleasesEarly, "dag_aligned"),
    model(MarkerAheadOfMessages, "ring_classic"),
    model(CountsArrivals, "ring_classic"),
    model(ResendsTooLittle, "fork_aligned_break"),
    model(ForgetsMarkerOnWire, "fork_aligned_break"),
    model(RestoresNoInbox, "fork_classic_crash"),
    model(RenumbersAfterRestore, "fork_classic_crash"),
    model(AcknowledgesBeforeStoring, "fork_classic_abort"),
    model(HidesFailedPart, "fork_classic_abort"),
    model(CompletesTooSoon, "ring_classic"),
    protocol(
        ForwardsEndedMarker,
        "ended::a_late_marker_of_an_ended_snapshot_neither_opens_it_again_nor_is_forwarded",
    ),
    protocol(
        NeverReleases,
        "modes::a_channel_is_held_from_its_marker_until_the_state_is_taken",
    ),
    protocol(
        MovesLowItself,
        "ended::a_late_marker_of_an_ended_snapshot_neither_opens_it_again_nor_is_forwarded",
    ),
    protocol(
        AcceptsDuplicate,
        "breaches::a_duplicate_is_dropped_whole_or_in_part_and_is_no_breach",
    ),
    protocol(AcceptsGap, "breaches::a_gap_between_messages_is_a_breach"),
    protocol(
        RestatesNoCredit,
        "channels::everything_is_handled_once_in_order_however_often_streams_break",
    ),
    protocol(
        IgnoresIncarnation,
        "breaches::another_incarnation_of_the_sender_cannot_resume_a_channel",
    ),
    protocol(
        IgnoresGeneration,
        "fencing::frames_and_words_of_an_older_generation_change_nothing",
    ),
    protocol(
        IgnoresTerm,
        "fencing::the_word_of_an_older_term_changes_nothing",
    ),
    protocol(
        TakesBeforeRun,
        "fencing::until_run_frames_are_queued_and_nothing_is_handled",
    ),
    protocol(
        CountsOldParts,
        "membership::parts_of_another_generation_are_no_parts",
    ),
    protocol(
        ReusesId,
        "windows::an_id_that_another_collector_took_is_ended_and_the_next_is_tried",
    ),
    protocol(
        TakesUnknownForAborted,
        "leadership::a_complete_manifest_whose_outcome_was_unknown_counts",
    ),
    protocol(
        AdmitsSecondClaimant,
        "membership::a_second_claimant_is_refused_while_the_first_lives",
    ),
    protocol(
        RunsBeforeReady,
        "membership::nobody_prepares_before_all_have_joined_and_nobody_runs_before_all_are_ready",
    ),
    protocol(
        ReturnsToAbandonedBranch,
        "restores::a_branch_that_was_left_is_never_returned_to",
    ),
    protocol(
        DeletesRestorePoint,
        "retention::what_is_being_restored_is_kept_though_another_completes_meanwhile",
    ),
    protocol(
        LeavesSnapshotsOpen,
        "leadership::a_new_term_ends_every_snapshot_that_has_no_manifest",
    ),
];
