//! Medians and how sure they are. Nothing here assumes a distribution: other programs on the
//! machine disturb some rounds a lot and most not at all.

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => (sorted[half - 1] + sorted[half]) / 2.0,
        _ => sorted[half],
    }
}

/// The value that this share of all lies below.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let sorted = sorted(values);
    let place = (share * sorted.len() as f64) as usize;
    sorted[place.min(sorted.len() - 1)]
}

/// The interval that the true median lies in with a probability of at least 95 %, from the
/// order of the values alone; `None` if there are too few of them to say.
pub(crate) fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let sorted = sorted(values);
    let count = sorted.len();
    // The chance that exactly k of so many values lie below their median is binomial.
    let mut chance = 0.5f64.powi(i32::try_from(count).ok()?);
    let (mut below, mut rank) = (chance, 0);
    while below <= 0.025 && rank < count {
        rank += 1;
        chance *= (count - rank + 1) as f64 / rank as f64;
        below += chance;
    }
    // `rank` is the first number of values whose chance to be too few is over 2.5 %.
    (rank > 0).then(|| (sorted[rank - 1], sorted[count - rank]))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    assert!(!values.is_empty(), "nothing was measured");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}
