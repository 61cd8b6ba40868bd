//! Small wrong protocols, to show that some test sees each of them: a test that no wrong protocol
//! fails proves nothing.
//!
//! Each is one line where the core asks `is`. Without the feature `mutants`, which nothing that
//! is released has, that is `false` at compile time and nothing of it is left. With it, one is
//! chosen for the whole program before its first test, by name.

#[cfg(all(feature = "mutants", not(debug_assertions)))]
compile_error!("the feature `mutants` is for tests: leave it out of what is released");

/// One way to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "what each does wrong is told by `wrong`")]
pub enum Mutant {
    RecordsLate,
    ForgetsChannel,
    LogsBehindMarker,
    ForgetsInbox,
    ForgetsOvertakenInput,
    ForgetsBackEdge,
    DropsSenderShare,
    ReleasesEarly,
    NeverReleases,
    MarkerAheadOfMessages,
    ForwardsEndedMarker,
    MovesLowItself,
    CountsArrivals,
    AcceptsDuplicate,
    AcceptsGap,
    ResendsTooLittle,
    ForgetsMarkerOnWire,
    RestatesNoCredit,
    IgnoresIncarnation,
    IgnoresGeneration,
    IgnoresTerm,
    TakesBeforeRun,
    RestoresNoInbox,
    RenumbersAfterRestore,
    AcknowledgesBeforeStoring,
    HidesFailedPart,
    CompletesTooSoon,
    CountsOldParts,
    ReusesId,
    TakesUnknownForAborted,
    AdmitsSecondClaimant,
    RunsBeforeReady,
    ReturnsToAbandonedBranch,
    DeletesRestorePoint,
    LeavesSnapshotsOpen,
}

/// Whether this is the wrong protocol that runs.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn is(_: Mutant) -> bool {
    false
}

#[cfg(feature = "mutants")]
pub use chosen::{ALL, choose};

#[cfg(feature = "mutants")]
pub(crate) use chosen::is;

#[cfg(feature = "mutants")]
mod chosen {
    use std::sync::OnceLock;

    use super::Mutant::{self, *};

    static CHOSEN: OnceLock<Option<Mutant>> = OnceLock::new();

    /// Every wrong protocol and what it does wrong.
    pub const ALL: [(Mutant, &str); 35] = [
        (
            RecordsLate,
            "a process records, and sends its markers, at the last marker, not the first",
        ),
        (
            ForgetsChannel,
            "the channel state of a process's first input is not recorded",
        ),
        (
            LogsBehindMarker,
            "what arrives behind the marker is recorded too",
        ),
        (
            ForgetsInbox,
            "what stands in an inbox when the state is taken is not recorded",
        ),
        (
            ForgetsOvertakenInput,
            "nothing is recorded of a channel whose marker came first and overtook",
        ),
        (
            ForgetsBackEdge,
            "an aligned snapshot does not log its back edges",
        ),
        (
            DropsSenderShare,
            "what a marker overtook in an outbox is not recorded",
        ),
        (ReleasesEarly, "no channel is held behind its marker"),
        (NeverReleases, "a channel that was held stays held"),
        (
            MarkerAheadOfMessages,
            "a marker is put ahead of messages sent before it",
        ),
        (
            ForwardsEndedMarker,
            "the marker of a snapshot that has ended opens it again",
        ),
        (
            MovesLowItself,
            "a process takes a snapshot that ended for the last of all that have",
        ),
        (
            CountsArrivals,
            "a message counts as handled when it arrives",
        ),
        (
            AcceptsDuplicate,
            "a message that is sent again is taken in again",
        ),
        (AcceptsGap, "a message that is not the next is taken in"),
        (
            ResendsTooLittle,
            "after a broken stream the first message that is due is left out",
        ),
        (
            ForgetsMarkerOnWire,
            "a marker that was on a broken stream is not sent again",
        ),
        (RestatesNoCredit, "an opened stream brings no credit"),
        (
            IgnoresIncarnation,
            "any incarnation of a sender may resume a channel",
        ),
        (
            IgnoresGeneration,
            "frames of another generation are taken in",
        ),
        (IgnoresTerm, "the word of an older term is obeyed"),
        (
            TakesBeforeRun,
            "messages are handled before everyone is ready",
        ),
        (RestoresNoInbox, "receiver shares are not restored"),
        (
            RenumbersAfterRestore,
            "messages are numbered from 1 again after a restore",
        ),
        (
            AcknowledgesBeforeStoring,
            "a part is reported whatever came of writing it",
        ),
        (
            HidesFailedPart,
            "a part that cannot be written is not reported",
        ),
        (
            CompletesTooSoon,
            "a snapshot is complete when all parts but one are in",
        ),
        (CountsOldParts, "a part of an older generation counts"),
        (ReusesId, "the id of an aborted snapshot is given out again"),
        (
            TakesUnknownForAborted,
            "an end of unknown outcome counts as an abort",
        ),
        (
            AdmitsSecondClaimant,
            "a second claimant of a live process takes its place",
        ),
        (
            RunsBeforeReady,
            "everyone runs when everyone is there, prepared or not",
        ),
        (
            ReturnsToAbandonedBranch,
            "a loss goes back to the newest snapshot of any generation",
        ),
        (
            DeletesRestorePoint,
            "retention keeps the newest, whatever a restore would take",
        ),
        (
            LeavesSnapshotsOpen,
            "a new term does not end the snapshots of the one before",
        ),
    ];

    /// Whether this is the wrong protocol that runs.
    pub(crate) fn is(mutant: Mutant) -> bool {
        CHOSEN.get() == Some(&Some(mutant))
    }

    /// Chooses by name what runs from now on; only the first choice counts, and no name is right.
    pub fn choose(name: Option<&str>) {
        let named = |(mutant, _): &&(Mutant, _)| name == Some(format!("{mutant:?}").as_str());
        let mutant = ALL.iter().find(named).map(|(mutant, _)| *mutant);
        assert!(
            name.is_none() || mutant.is_some(),
            "there is no mutant {name:?}"
        );
        CHOSEN.get_or_init(|| mutant);
    }
}
