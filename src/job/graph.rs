//! Channels as people write them, and whole topologies by one word.

use std::collections::BTreeMap;
use std::fmt;

use super::refusal::list;

/// Channels a job may have. Each is a TCP connection of its own, and a host has some 60,000
/// ports for one address.
pub const CHANNELS_MAX: usize = 1 << 16;

/// A directed channel between two named processes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The process that sends.
    pub from: String,
    /// The process that receives.
    pub to: String,
    /// Which of the parallel channels, from 1.
    pub nth: u32,
}

impl Link {
    /// The first (mostly the only) channel between two processes.
    pub fn new(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
            nth: 1,
        }
    }

    fn back(&self) -> Self {
        Self {
            from: self.to.clone(),
            to: self.from.clone(),
            nth: self.nth,
        }
    }

    /// Reads `p1 -> p2`, `p1→p2#2` or, for both directions, `p1 <-> p2`; the blanks are free.
    pub(super) fn parse(text: &str) -> Option<Vec<Self>> {
        let arrows = [("<->", true), ("↔", true), ("->", false), ("→", false)];
        let split = |(arrow, both)| Some((text.split_once(arrow)?, both));
        let ((from, rest), both) = arrows.into_iter().find_map(split)?;
        let (to, nth) = match rest.split_once('#') {
            None => (rest, 1),
            Some((to, nth)) => (to, nth.trim().parse().ok().filter(|&nth| nth > 0)?),
        };
        let (from, to) = (from.trim(), to.trim());
        let is_name = |name: &str| {
            let unfit = |c: char| c.is_whitespace() || matches!(c, '#' | '→' | '↔');
            !name.is_empty() && !name.contains(unfit) && !name.contains("->")
        };
        if !is_name(from) || !is_name(to) {
            return None;
        }
        let link = Self {
            nth,
            ..Self::new(from, to)
        };
        Some(if both {
            vec![link.back(), link]
        } else {
            vec![link]
        })
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}→{}", self.from, self.to)?;
        if self.nth > 1 {
            write!(f, "#{}", self.nth)
        } else {
            Ok(())
        }
    }
}

/// A topology given by one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Each process to the next, the last to the first.
    Ring,
    /// Each process to every other.
    Mesh,
    /// Each process to the next, one way.
    Line,
    /// The first process to every other, and back.
    Star,
    /// A ring and so many further channels.
    Random { seed: u64, edges: usize },
}

/// The words for topologies.
pub(super) const KINDS: [&str; 5] = ["ring", "mesh", "line", "star", "random"];

impl Kind {
    /// The channels between `processes`, in order; or what is wrong and the remedy.
    pub(super) fn links(self, processes: &[String]) -> Result<Vec<Link>, (String, String)> {
        let count = processes.len();
        let channels = match self {
            Self::Ring => count,
            Self::Mesh => count * count.saturating_sub(1),
            Self::Line => count.saturating_sub(1),
            Self::Star => 2 * count.saturating_sub(1),
            Self::Random { edges, .. } => count.saturating_add(edges),
        };
        if channels > CHANNELS_MAX {
            let problem = format!("the topology has {channels} channels, over {CHANNELS_MAX}");
            return Err((problem, "take fewer processes or another topology".into()));
        }
        let ring = || (0..count).map(|from| (from, (from + 1) % count));
        let pairs: Vec<(usize, usize)> = match self {
            Self::Ring | Self::Random { .. } if count < 2 => {
                let problem = "a ring of one process would be a channel to itself".into();
                return Err((
                    problem,
                    "take at least two processes, or no topology".into(),
                ));
            }
            Self::Ring => ring().collect(),
            Self::Mesh => pairs(count).collect(),
            Self::Line => (1..count).map(|to| (to - 1, to)).collect(),
            Self::Star => (1..count).flat_map(|leaf| [(0, leaf), (leaf, 0)]).collect(),
            Self::Random { seed, edges } => {
                let picked = pick(count * (count - 2), edges, seed)?.into_iter();
                let free = picked.map(|place| off_the_ring(count, place));
                ring().chain(free).collect()
            }
        };
        let link = |(from, to): (usize, usize)| Link::new(&*processes[from], &*processes[to]);
        Ok(pairs.into_iter().map(link).collect())
    }

    /// The topology that the word stands for; `random` takes the seed and the edges.
    pub(super) fn named(
        word: &str,
        seed: u64,
        edges: Option<usize>,
    ) -> Result<Self, (String, String)> {
        Ok(match word {
            "ring" => Self::Ring,
            "mesh" => Self::Mesh,
            "line" => Self::Line,
            "star" => Self::Star,
            "random" => {
                let edges = edges.ok_or_else(|| {
                    let remedy = "give topology = { kind = \"random\", edges = 3 }".to_owned();
                    (
                        "a random topology needs its number of edges".to_owned(),
                        remedy,
                    )
                })?;
                Self::Random { seed, edges }
            }
            _ => {
                let problem = format!("unknown topology '{word}'");
                return Err((problem, format!("use one of {}", list(KINDS))));
            }
        })
    }
}

/// All pairs of different places, in order.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    let row = move |from| (0..count).map(move |to| (from, to));
    (0..count).flat_map(row).filter(|(from, to)| from != to)
}

/// Of all pairs that are not on the ring, in order, the one at a place.
fn off_the_ring(count: usize, place: usize) -> (usize, usize) {
    let (from, to) = (place / (count - 2), place % (count - 2));
    let next = (from + 1) % count;
    // Two are left out: the place itself and its next.
    let to = to + usize::from(to >= from.min(next));
    (from, to + usize::from(to >= from.max(next)))
}

/// So many of the places in a list of this length, chosen by the seed: the first steps of a
/// Fisher–Yates shuffle. Only what has moved is written down, for there may be many more places
/// than there is memory.
fn pick(length: usize, count: usize, seed: u64) -> Result<Vec<usize>, (String, String)> {
    if count > length {
        let problem = format!("edges = {count}, and only {length} are not in the ring");
        return Err((problem, "give fewer edges, or use the topology mesh".into()));
    }
    let mut random = SplitMix64(seed);
    let mut moved: BTreeMap<usize, usize> = BTreeMap::new();
    let picked = (0..count).map(|place| {
        let left = (length - place) as u64;
        // The bias of the remainder is below 2^-32, and only the look of a graph hangs on it.
        let chosen = usize::try_from(random.next() % left).expect("less than a length");
        let here = moved.get(&place).copied().unwrap_or(place);
        let there = moved.insert(place + chosen, here);
        there.unwrap_or(place + chosen)
    });
    Ok(picked.collect())
}

/// Steele, Lea and Flood's generator: the same seed gives the same graph on every machine.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("p{number}")).collect()
    }

    fn written(kind: Kind, count: usize) -> Vec<String> {
        kind.links(&names(count))
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn channels_are_read_in_every_spelling() {
        let read = |text| {
            let links = Link::parse(text)?;
            Some(
                links
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        };
        assert_eq!(read("p1 -> p2").as_deref(), Some("p1→p2"));
        assert_eq!(read("p1→p2").as_deref(), Some("p1→p2"));
        assert_eq!(read(" p1→p2 # 2").as_deref(), Some("p1→p2#2"));
        assert_eq!(read("p1 <-> p2").as_deref(), Some("p2→p1 p1→p2"));
        assert_eq!(read("p1↔p2#3").as_deref(), Some("p2→p1#3 p1→p2#3"));
        assert_eq!(read("a-1->b-2").as_deref(), Some("a-1→b-2"));
        let refused = [
            "",
            "p1",
            "->",
            "p1 ->",
            "-> p2",
            "p1->p2#0",
            "p1->p2#x",
            "p1->p2->p3",
        ];
        assert!(refused.iter().all(|text| read(text).is_none()));
    }

    #[test]
    fn each_word_gives_the_channels_it_stands_for() {
        assert_eq!(written(Kind::Ring, 3), ["p1→p2", "p2→p3", "p3→p1"]);
        assert_eq!(written(Kind::Line, 3), ["p1→p2", "p2→p3"]);
        assert_eq!(written(Kind::Star, 3), ["p1→p2", "p2→p1", "p1→p3", "p3→p1"]);
        assert_eq!(written(Kind::Mesh, 3).len(), 6);
        assert!(written(Kind::Mesh, 1).is_empty());
    }

    #[test]
    fn a_random_topology_is_a_ring_and_as_many_more_as_asked_for() {
        let graph = written(Kind::Random { seed: 7, edges: 5 }, 6);
        assert_eq!(graph[..6], written(Kind::Ring, 6)[..]);
        assert_eq!(graph.len(), 11);
        assert_eq!(
            graph.iter().collect::<BTreeSet<_>>().len(),
            11,
            "no channel twice"
        );
        assert_eq!(
            graph,
            written(Kind::Random { seed: 7, edges: 5 }, 6),
            "the seed decides"
        );
        assert_ne!(graph, written(Kind::Random { seed: 8, edges: 5 }, 6));
        assert_eq!(
            written(Kind::Random { seed: 1, edges: 24 }, 6).len(),
            30,
            "up to a mesh"
        );
    }

    #[test]
    fn what_is_picked_is_what_a_shuffle_of_the_whole_list_brings_to_the_front() {
        for (count, seed) in [(3, 1), (4, 2), (7, 3), (7, 4)] {
            let mut list: Vec<_> = pairs(count)
                .filter(|&(from, to)| to != (from + 1) % count)
                .collect();
            let picked = pick(list.len(), list.len(), seed).unwrap().into_iter();
            let picked: Vec<_> = picked.map(|place| off_the_ring(count, place)).collect();
            let mut random = SplitMix64(seed);
            for place in 0..list.len() {
                let left = (list.len() - place) as u64;
                list.swap(
                    place,
                    place + usize::try_from(random.next() % left).unwrap(),
                );
            }
            assert_eq!(picked, list, "{count} by seed {seed}");
        }
    }

    #[test]
    fn impossible_topologies_are_refused_with_the_remedy() {
        let refusal = |kind: Kind, count| kind.links(&names(count)).unwrap_err();
        assert!(refusal(Kind::Ring, 1).0.contains("itself"));
        assert!(
            refusal(Kind::Random { seed: 1, edges: 1 }, 2)
                .0
                .contains("only 0")
        );
        assert!(refusal(Kind::Mesh, 300).0.contains("89700 channels"));
        assert!(
            Kind::named("random", 1, None)
                .unwrap_err()
                .1
                .contains("edges = 3")
        );
        assert!(
            Kind::named("torus", 1, None)
                .unwrap_err()
                .1
                .contains("ring, mesh")
        );
    }

    #[test]
    fn the_generator_is_the_published_one() {
        let mut random = SplitMix64(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }
}
