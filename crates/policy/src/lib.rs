//! Who goes next: ranks, ordered queue, starvation guard.
