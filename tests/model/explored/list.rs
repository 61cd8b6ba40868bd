//! The list of all worlds that are explored.

use cutline::protocol::mode::Mode;

use super::case::{Case, Graph, Trouble, case};
use super::rare::Rare;

const RING: Graph = Graph {
    name: "ring",
    processes: 3,
    channels: "p1→p2 p2→p3 p3→p1",
};

const MESH: Graph = Graph {
    name: "mesh",
    processes: 3,
    channels: "p1→p2 p1→p3 p2→p1 p2→p3 p3→p1 p3→p2",
};

/// Two sources and a join.
const DAG: Graph = Graph {
    name: "dag",
    processes: 4,
    channels: "p1→p3 p2→p3 p2→p4 p3→p4",
};

/// As small as a graph with a join can be.
const FORK: Graph = Graph {
    name: "fork",
    processes: 3,
    channels: "p1→p2 p1→p3 p2→p3",
};

/// A cycle that is entered from without: its process has an input that is awaited and a back edge.
const LASSO: Graph = Graph {
    name: "lasso",
    processes: 3,
    channels: "p1→p2 p2→p3 p3→p2",
};

/// As small as a graph can be.
const LINE: Graph = Graph {
    name: "line",
    processes: 2,
    channels: "p1→p2",
};

/// Two parallel channels: as small as a graph can be whose receiver waits for markers.
const PAIR: Graph = Graph {
    name: "pair",
    processes: 2,
    channels: "p1→p2 p1→p2#2",
};

use Mode::{Aligned, AtLeastOnce, Classic, Unaligned};
use Rare::{
    Aborted, BackEdge, BehindTakenBack, Complete, CompleteAfter, Found, FromTheStart, InFlight,
    Inconsistent, LateMarker, MarkerBetween, Overlap, OvertakesInbox, OvertakesOutbox,
    OvertakingAgain, RecordsWhileDown, StrikesInbox, StrikesOutbox, Superseded, TakenBack,
    TakenBackInFlight, TakenBackReceiver, TakenBackSender,
};
use Trouble::{
    Abort, Break, BreakTwice, Collector, Crash, Limit, LimitBreak, LimitCrash, Nothing, Unknown,
};

/// Once round, and one more.
const ROUND: (Graph, &str) = (RING, "p1→p2:1 p2→p3 p3→p1");
const HALF_ROUND: (Graph, &str) = (RING, "p1→p2 p3→p1");
const BETWEEN: (Graph, &str) = (MESH, "p1→p2 p2→p1");
const DOWN: (Graph, &str) = (DAG, "p1→p3 p2→p3:1");
const ONE_DOWN: (Graph, &str) = (DAG, "p2→p3:1");
const FORKED: (Graph, &str) = (FORK, "p1→p2:1 p1→p3");
const ONE_FORKED: (Graph, &str) = (FORK, "p1→p2:1");
const ACROSS: (Graph, &str) = (FORK, "p1→p3");
const IDLE: (Graph, &str) = (FORK, "");
const LASSOED: (Graph, &str) = (LASSO, "p1→p2 p3→p2");
const PAIRED: (Graph, &str) = (PAIR, "p1→p2 p1→p2#2");
const TWO_PAIRED: (Graph, &str) = (PAIR, "p1→p2 p1→p2");
const ONE_IN_LINE: (Graph, &str) = (LINE, "p1→p2");
/// Two on one channel, so that a marker can stand between them.
const TWO_ROUND: (Graph, &str) = (RING, "p1→p2 p1→p2");
const TWO_FORKED: (Graph, &str) = (FORK, "p1→p2 p1→p2");

/// Every world, in the order of the table.
pub(crate) const CASES: &[Case] = &[
    case("ring_classic", ROUND, (Classic, 1), Nothing, &[InFlight]),
    case("mesh_classic", BETWEEN, (Classic, 1), Nothing, &[InFlight]),
    case("dag_classic", DOWN, (Classic, 1), Nothing, &[InFlight]),
    case(
        "ring_classic_twice",
        HALF_ROUND,
        (Classic, 2),
        Nothing,
        &[InFlight, Overlap],
    ),
    case(
        "fork_classic_twice",
        FORKED,
        (Classic, 2),
        Nothing,
        &[InFlight, Overlap],
    ),
    case("ring_aligned", ROUND, (Aligned, 1), Nothing, &[BackEdge]),
    case("lasso_aligned", LASSOED, (Aligned, 1), Nothing, &[BackEdge]),
    case("dag_aligned", DOWN, (Aligned, 1), Nothing, &[Complete]),
    case("pair_aligned", PAIRED, (Aligned, 1), Nothing, &[Complete]),
    case(
        "fork_aligned_twice",
        ACROSS,
        (Aligned, 2),
        Nothing,
        &[Superseded, LateMarker, Complete],
    ),
    case(
        "ring_unaligned",
        ROUND,
        (Unaligned, 1),
        Nothing,
        &[OvertakesOutbox, OvertakesInbox],
    ),
    case(
        "dag_unaligned",
        DOWN,
        (Unaligned, 1),
        Nothing,
        &[OvertakesOutbox, OvertakesInbox],
    ),
    case(
        "fork_unaligned_twice",
        ACROSS,
        (Unaligned, 2),
        Nothing,
        &[Superseded, LateMarker, OvertakesOutbox, OvertakesInbox],
    ),
    case(
        "dag_at_least_once",
        DOWN,
        (AtLeastOnce, 1),
        Nothing,
        &[Inconsistent],
    ),
    case(
        "ring_aligned_limit",
        HALF_ROUND,
        (Aligned, 1),
        Limit,
        &[StrikesOutbox, StrikesInbox],
    ),
    case(
        "dag_aligned_limit",
        ONE_DOWN,
        (Aligned, 1),
        Limit,
        &[StrikesOutbox, StrikesInbox],
    ),
    case(
        "fork_aligned_limit",
        FORKED,
        (Aligned, 1),
        Limit,
        &[StrikesOutbox, StrikesInbox],
    ),
    case(
        "fork_aligned_limit_idle",
        IDLE,
        (Aligned, 1),
        Limit,
        &[CompleteAfter],
    ),
    case(
        "line_aligned_twice_limit",
        ONE_IN_LINE,
        (Aligned, 2),
        Limit,
        &[Superseded, LateMarker, StrikesOutbox, StrikesInbox],
    ),
    case(
        "pair_aligned_limit_crash",
        PAIRED,
        (Aligned, 1),
        LimitCrash,
        &[TakenBackSender, TakenBackReceiver],
    ),
    case(
        "pair_aligned_limit_break",
        TWO_PAIRED,
        (Aligned, 1),
        LimitBreak("p1→p2"),
        &[StrikesOutbox, StrikesInbox, MarkerBetween],
    ),
    case(
        "ring_classic_break",
        TWO_ROUND,
        (Classic, 1),
        Break("p1→p2 p2→p3 p3→p1"),
        &[MarkerBetween, RecordsWhileDown],
    ),
    case(
        "fork_classic_break",
        TWO_FORKED,
        (Classic, 1),
        Break("p1→p2 p1→p3 p2→p3"),
        &[MarkerBetween, RecordsWhileDown],
    ),
    case(
        "fork_aligned_break",
        TWO_FORKED,
        (Aligned, 1),
        Break("p1→p2 p1→p3 p2→p3"),
        &[MarkerBetween, RecordsWhileDown],
    ),
    case(
        "fork_unaligned_break",
        TWO_FORKED,
        (Unaligned, 1),
        Break("p1→p2 p2→p3"),
        &[
            MarkerBetween,
            OvertakingAgain,
            BehindTakenBack,
            RecordsWhileDown,
        ],
    ),
    case(
        "ring_unaligned_break",
        TWO_ROUND,
        (Unaligned, 1),
        Break("p1→p2 p2→p3 p3→p1"),
        &[
            MarkerBetween,
            OvertakingAgain,
            BehindTakenBack,
            RecordsWhileDown,
        ],
    ),
    case(
        "pair_classic_break_twice",
        TWO_PAIRED,
        (Classic, 1),
        BreakTwice("p1→p2"),
        &[MarkerBetween],
    ),
    case(
        "pair_unaligned_break_twice",
        TWO_PAIRED,
        (Unaligned, 1),
        BreakTwice("p1→p2"),
        &[MarkerBetween],
    ),
    case(
        "line_unaligned_twice_break",
        ONE_IN_LINE,
        (Unaligned, 2),
        Break("p1→p2"),
        &[Superseded, LateMarker, OvertakingAgain],
    ),
    case(
        "ring_classic_crash",
        HALF_ROUND,
        (Classic, 1),
        Crash,
        &[TakenBackInFlight, FromTheStart],
    ),
    case(
        "ring_aligned_crash",
        HALF_ROUND,
        (Aligned, 1),
        Crash,
        &[BackEdge, TakenBackReceiver],
    ),
    case(
        "fork_classic_crash",
        ONE_FORKED,
        (Classic, 1),
        Crash,
        &[TakenBackInFlight, Aborted],
    ),
    case(
        "fork_aligned_crash",
        ONE_FORKED,
        (Aligned, 1),
        Crash,
        &[TakenBack, Aborted],
    ),
    case(
        "fork_unaligned_crash",
        ONE_FORKED,
        (Unaligned, 1),
        Crash,
        &[TakenBackSender, TakenBackReceiver, Aborted],
    ),
    case(
        "pair_unaligned_crash",
        PAIRED,
        (Unaligned, 1),
        Crash,
        &[TakenBackSender, TakenBackReceiver],
    ),
    case(
        "line_unaligned_twice_crash",
        ONE_IN_LINE,
        (Unaligned, 2),
        Crash,
        &[Superseded, TakenBackSender],
    ),
    case(
        "ring_classic_collector",
        HALF_ROUND,
        (Classic, 1),
        Collector,
        &[Aborted, Found],
    ),
    case(
        "fork_classic_collector",
        ONE_FORKED,
        (Classic, 1),
        Collector,
        &[Aborted, Found],
    ),
    case(
        "fork_aligned_collector",
        ONE_FORKED,
        (Aligned, 1),
        Collector,
        &[Aborted, Found],
    ),
    case(
        "fork_unaligned_collector",
        ONE_FORKED,
        (Unaligned, 1),
        Collector,
        &[Aborted, Found],
    ),
    case(
        "ring_classic_abort",
        HALF_ROUND,
        (Classic, 1),
        Abort,
        &[Aborted, LateMarker],
    ),
    case(
        "fork_classic_abort",
        ONE_FORKED,
        (Classic, 1),
        Abort,
        &[Aborted, LateMarker],
    ),
    case(
        "fork_aligned_abort",
        FORKED,
        (Aligned, 1),
        Abort,
        &[Aborted, LateMarker],
    ),
    case(
        "fork_unaligned_abort",
        ONE_FORKED,
        (Unaligned, 1),
        Abort,
        &[Aborted, LateMarker],
    ),
    case(
        "ring_classic_unknown",
        HALF_ROUND,
        (Classic, 1),
        Unknown,
        &[Aborted, CompleteAfter],
    ),
    case(
        "fork_classic_unknown",
        FORKED,
        (Classic, 1),
        Unknown,
        &[Aborted, CompleteAfter],
    ),
    case(
        "fork_unaligned_unknown",
        ONE_FORKED,
        (Unaligned, 1),
        Unknown,
        &[Aborted, CompleteAfter],
    ),
];
