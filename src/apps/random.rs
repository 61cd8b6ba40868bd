//! Randomness that is part of the state: a restored run draws what it would have drawn.

use serde::{Deserialize, Serialize};

use crate::protocol::ids::ProcessId;

/// SplitMix64 (Steele, Lea, Flood 2014): one `u64` of state, good enough to pick amounts and
/// neighbours, of no use for secrets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SplitMix64 {
    state: u64,
}

/// The step from state to state: the golden ratio in 64 bits, as in the paper.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix64 {
    /// The generator of one process: every process of a job draws from another place.
    #[must_use]
    pub fn new(seed: u64, process: ProcessId) -> Self {
        Self {
            state: mix(mix(seed).wrapping_add(u64::from(process.get()))),
        }
    }

    /// The next number; all are as likely.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// A number from 0 up to, and not including, `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The high half of the product. Its bias is at most `end` / 2⁶⁴.
        let product = u128::from(self.draw()) * u128::from(end);
        u64::try_from(product >> 64).expect("the high half of 128 bits")
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_generator() {
        let mut random = SplitMix64 { state: 1_234_567 };
        let drawn = [random.draw(), random.draw(), random.draw()];
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(drawn, published);
    }

    #[test]
    fn processes_and_seeds_draw_differently() {
        let first = |seed, process| SplitMix64::new(seed, ProcessId::new(process)).draw();
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_eq!(first(1, 0), first(1, 0));
    }

    #[test]
    fn every_number_below_the_end_is_drawn_and_no_other() {
        let mut random = SplitMix64::new(3, ProcessId::new(0));
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[usize::try_from(random.below(5)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&times| times > 100), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }
}
