//! A world as a state: two that are equal have the same future.

use std::hash::{Hash, Hasher};

use super::World;

impl<A> World<A> {
    /// What decides the future. The job never changes; what was noticed, answered, touched or
    /// traced is told to those who watch and comes back to nobody. Time is part of it, but moves
    /// only when it is chosen to: [`Fault::Pass`](super::Fault::Pass).
    fn decisive(&self) -> impl Hash + Eq + '_
    where
        A: Hash + Eq,
    {
        let Self {
            job: _,
            notices: _,
            answers: _,
            trace: _,
            touched: _,
            nodes,
            links,
            control,
            collector,
            disk,
            collectors,
            incarnations,
            requests,
            now_ms,
            ended,
        } = self;
        let nodes = nodes.iter().map(|node| (&node.process, &node.captured));
        let nodes = nodes.collect::<Vec<_>>();
        (
            (nodes, links, control, collector, disk),
            (collectors, incarnations, requests, now_ms, ended),
        )
    }
}

/// Of worlds of one job; others are not to be compared.
impl<A: Eq + Hash> PartialEq for World<A> {
    fn eq(&self, other: &Self) -> bool {
        self.decisive() == other.decisive()
    }
}

impl<A: Eq + Hash> Eq for World<A> {}

impl<A: Eq + Hash> Hash for World<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.decisive().hash(state);
    }
}
