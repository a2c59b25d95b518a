//! Who has to make room and who may stay, by turns and at random.

use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;
use std::task::{Context, Poll, Waker};

fn at(last: u8) -> Origin {
    Origin::Network(ClientNetwork::V4(Ipv4Addr::new(192, 0, 2, last)))
}

fn is_ready(waiting: impl Future<Output = ()>) -> bool {
    let waiting = std::pin::pin!(waiting);
    waiting.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

/// Lets one login after the other come from these origins; the numbers of those that stayed.
fn stay(origins: &[u8], bounds: SlotLimits) -> Vec<usize> {
    let slots = Slots::default();
    let logins: Vec<LoginSlot> = origins
        .iter()
        .map(|last| slots.arrive(at(*last), bounds).0)
        .collect();
    let stayed = logins.iter().enumerate();
    stayed
        .filter_map(|(number, login)| (!is_ready(login.ended())).then_some(number))
        .collect()
}

#[test]
fn the_first_of_the_origin_that_has_most_makes_room() {
    let bounds = SlotLimits {
        clients: 2,
        of_origin: None,
    };
    // 34 connections fit. One stranger has 40 silent ones, another has 2 that are older.
    let mut origins = vec![7, 7];
    origins.extend([9; 40]);
    let stayed = stay(&origins, bounds);
    assert_eq!(stayed.len(), 34);
    assert_eq!(stayed[..3], [0, 1, 10]);
}

#[test]
fn for_want_of_descriptors_many_silent_ones_of_an_origin_end_and_single_ones_stay() {
    let bounds = SlotLimits {
        clients: 1000,
        of_origin: None,
    };
    let slots = Slots::default();
    let origins = [&[7, 8][..], &[9; 40]].concat();
    let logins: Vec<LoginSlot> = origins
        .iter()
        .map(|last| slots.arrive(at(*last), bounds).0)
        .collect();
    let mut ended = Vec::new();
    for _ in 0..4 {
        ended.push(slots.end_for_room(16));
    }
    // Of those that are left, one ends at a time.
    assert_eq!(ended, [16, 16, 7, 1]);
    let stayed = logins.iter().filter(|login| !is_ready(login.ended()));
    assert_eq!(stayed.count(), 2);
}

#[test]
fn one_origin_is_bounded_and_its_own_first_makes_room() {
    let bounds = SlotLimits {
        clients: 100,
        of_origin: Some(3),
    };
    let mut origins = vec![7];
    origins.extend([9; 20]);
    let stayed = stay(&origins, bounds);
    assert_eq!(stayed.len(), 1 + 3 + BESIDE_OF_ORIGIN);
    assert_eq!(stayed[..2], [0, 10]);
}

#[test]
fn a_login_for_which_the_gate_works_stays_while_another_is_silent() {
    let bounds = SlotLimits {
        clients: 1,
        of_origin: None,
    };
    let slots = Slots::default();
    let arrive = |last| slots.arrive(at(last), bounds).0;
    let first = arrive(1);
    let mut work = Box::pin(first.busy(std::future::pending::<()>()));
    assert!(!is_ready(work.as_mut()));
    let others: Vec<LoginSlot> = (0..BESIDE + 1).map(|_| arrive(1)).collect();
    assert!(is_ready(others[0].ended()) && !is_ready(first.ended()));
    drop(work);
    let _one_more = arrive(1);
    assert!(is_ready(first.ended()));
}

#[test]
fn whoever_has_proved_who_it_is_stays_and_one_too_many_is_told() {
    let bounds = SlotLimits {
        clients: 2,
        of_origin: Some(1),
    };
    let slots = Slots::default();
    let login = |last| slots.arrive(at(last), bounds).0;
    let first = login(1).client(bounds).unwrap();
    let again = login(1);
    assert_eq!(again.client(bounds).err(), Some(NoSlot::OfOrigin(1)));
    let _second = login(2).client(bounds).unwrap();
    assert_eq!(login(3).has_room(bounds), Err(NoSlot::Clients(2)));
    let consoles: Vec<_> = (0..CONSOLES_MAX)
        .map(|_| login(4).console().unwrap())
        .collect();
    assert_eq!(
        login(4).console().err(),
        Some(NoSlot::Consoles(CONSOLES_MAX))
    );
    drop((first, consoles));
    assert!(again.client(bounds).is_ok());
}

proptest! {
    #[test]
    fn there_are_never_too_many_and_nothing_stays_of_those_who_left(
        steps in prop::collection::vec((0u8..4, 0u8..5), 0..300),
        clients in 1usize..6,
        of_origin in prop::option::of(1usize..6),
    ) {
        let bounds = SlotLimits { clients, of_origin };
        let slots = Slots::default();
        let (mut logins, mut held) = (Vec::new(), Vec::new());
        for (origin, what) in steps {
            match what {
                0 if !logins.is_empty() => drop(logins.remove(0)),
                1 if !held.is_empty() => drop(held.remove(0)),
                2 => if let Some(login) = logins.pop() {
                    let login: LoginSlot = login;
                    held.extend(login.client(bounds).ok());
                    held.extend(login.console().ok());
                },
                _ => logins.push(slots.arrive(at(origin), bounds).0),
            }
            let state = slots.0.borrow();
            prop_assert!(state.clients <= clients && state.consoles <= CONSOLES_MAX);
            let all = state.clients + state.consoles + state.logins;
            prop_assert!(all <= clients + BESIDE + CONSOLES_MAX + 1);
            let counted: usize = state.of.values().map(OfOrigin::logins).sum();
            prop_assert_eq!(counted, state.logins);
        }
        drop((logins, held));
        let state = slots.0.borrow();
        prop_assert!(state.of.is_empty());
        prop_assert_eq!((state.logins, state.clients, state.consoles), (0, 0, 0));
    }
}
