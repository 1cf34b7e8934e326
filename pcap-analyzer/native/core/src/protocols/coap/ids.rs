//! The message IDs that a side has used, which are many: most senders count (RFC 7252 §4.4), and are answered soon.

use crate::exchanges::ExchangeId;
use rustc_hash::FxHashMap;

/// RFC 7252 §4.8.2, with the default transmission parameters of §4.8.
const EXCHANGE_LIFETIME_NS: i64 = 247_000_000_000;
/// RFC 7252 §4.8.2.
pub(super) const NON_LIFETIME_NS: i64 = 145_000_000_000;

/// What a message was, whose ID is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Role {
    Request,
    /// A request whose token a later one took before it was answered: what answers it has to carry its ID.
    Superseded,
    Response,
    Notification,
    Ping,
    #[default]
    Unmatched,
}

/// What a message is to those that refer to it by its ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Part {
    pub(super) role: Role,
    /// Of a notification: the registration's number among its client's.
    pub(super) registration: u16,
}

impl From<Role> for Part {
    fn from(role: Role) -> Self {
        Self { role, registration: 0 }
    }
}

/// A message whose ID is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sent {
    pub(super) id: u16,
    pub(super) time_ns: i64,
    pub(super) exchange: ExchangeId,
    /// See [`Part`].
    pub(super) registration: u16,
    pub(super) code: u8,
    pub(super) role: Role,
    pub(super) is_con: bool,
    pub(super) is_acknowledged: bool,
}

impl Sent {
    /// Whether the ID still names this message.
    pub(super) const fn is_alive(&self, now_ns: i64) -> bool {
        now_ns - self.time_ns < if self.is_con { EXCHANGE_LIFETIME_NS } else { NON_LIFETIME_NS }
    }
}

/// Messages that were sent last, which are looked through one by one.
const LAST: usize = 4;
/// How many there are before the first look for old ones.
const FIRST_SWEEP: u32 = 64;

/// Messages by ID: those whose IDs follow on each other, also with gaps, in their order; the others in a table of their own, where there are some.
#[derive(Debug, Default)]
pub(super) struct Ids {
    run: Vec<Sent>,
    /// IDs of the first and the last of `run`: so it is seen here that an ID is behind them all.
    first: u16,
    last: u16,
    /// How many there are when it is time to look for old ones.
    sweep_at: u32,
    others: Option<Box<FxHashMap<u16, Sent>>>,
}

impl Ids {
    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.run.len() + self.others.as_ref().map_or(0, |others| others.len())
    }

    /// The message with an ID.
    #[inline]
    pub(super) fn get(&self, id: u16) -> Option<&Sent> {
        match self.place(id) {
            Some(at) => self.run.get(at),
            None => self.others.as_ref()?.get(&id),
        }
    }

    /// All of them, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Sent> {
        self.run.iter().chain(self.others.iter().flat_map(|others| others.values()))
    }

    /// The message with an ID, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, id: u16) -> Option<&mut Sent> {
        match self.place(id) {
            Some(at) => self.run.get_mut(at),
            None => self.others.as_mut()?.get_mut(&id),
        }
    }

    /// Puts a message in. Returns the one that had its ID before.
    #[inline]
    pub(super) fn insert(&mut self, sent: Sent) -> Option<Sent> {
        if let Some(known) = self.get_mut(sent.id) {
            return Some(std::mem::replace(known, sent));
        }
        if self.is_behind_all(sent.id) {
            self.push(sent);
            return None;
        }
        self.others.get_or_insert_default().insert(sent.id, sent)
    }

    /// Forgets those whose lifetime is over, where it is time to look for them: amortised over the messages since the last time. Returns them.
    #[inline]
    pub(super) fn sweep(&mut self, now_ns: i64) -> Option<Vec<Sent>> {
        (self.len() >= self.sweep_at.max(FIRST_SWEEP) as usize).then(|| self.forget_old(now_ns))
    }

    fn forget_old(&mut self, now_ns: i64) -> Vec<Sent> {
        let mut old: Vec<Sent> = Vec::new();
        self.retain(|sent| {
            let is_alive = sent.is_alive(now_ns);
            if !is_alive {
                old.push(*sent);
            }
            is_alive
        });
        self.sweep_at = u32::try_from(self.len() * 2).unwrap_or(u32::MAX);
        old
    }

    /// Keeps those that are to be kept.
    fn retain(&mut self, mut is_kept: impl FnMut(&Sent) -> bool) {
        self.run.retain(&mut is_kept);
        self.first = self.run.first().map_or(self.first, |sent| sent.id);
        self.last = self.run.last().map_or(self.last, |sent| sent.id);
        self.others.take_if(|others| {
            others.retain(|_, sent| is_kept(sent));
            others.is_empty()
        });
    }

    /// Reads a little of it.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.last.into()
    }

    /// The same of the message sent last.
    #[inline]
    pub(super) fn touch_last(&self) -> u64 {
        self.run.last().map_or(0, |sent| sent.code.into())
    }

    const fn is_behind_all(&self, id: u16) -> bool {
        self.run.is_empty() || self.distance(id) > self.distance(self.last)
    }

    /// How far an ID is behind the first one. IDs begin anew behind the highest.
    const fn distance(&self, id: u16) -> u16 {
        id.wrapping_sub(self.first)
    }

    #[inline]
    fn place(&self, id: u16) -> Option<usize> {
        if self.is_behind_all(id) {
            return None;
        }
        let (before, last) = self.run.split_at(self.run.len().saturating_sub(LAST));
        match last.iter().rposition(|sent| sent.id == id) {
            Some(at) => Some(before.len() + at),
            None => before.binary_search_by_key(&self.distance(id), |sent| self.distance(sent.id)).ok(),
        }
    }

    fn push(&mut self, sent: Sent) {
        if self.run.len() == self.run.capacity() {
            // endpoints are many, so room is made for a few more only
            self.run.reserve_exact(self.run.len() / 2 + 2 * LAST);
        }
        if self.run.is_empty() {
            self.first = sent.id;
        }
        self.last = sent.id;
        self.run.push(sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn ids_are_many_and_take_no_more_room_than_they_need() {
        assert_eq!((32, 40), (size_of::<Sent>(), size_of::<Ids>()));
    }

    fn check(steps: impl Iterator<Item = (u16, u8, u8)>) -> Result<(), TestCaseError> {
        let (mut ids, mut map) = (Ids::default(), BTreeMap::new());
        for (id, code, step) in steps {
            let sent = Sent { id, code, ..Sent::default() };
            match step {
                0 => {
                    map.retain(|_, sent: &mut Sent| sent.code > 99);
                    ids.retain(|sent| sent.code > 99);
                }
                1 => {
                    map.entry(id).and_modify(|sent| sent.code = 100);
                    ids.get_mut(id).into_iter().for_each(|sent| sent.code = 100);
                }
                _ => prop_assert_eq!(map.insert(id, sent), ids.insert(sent)),
            }
            prop_assert_eq!((map.get(&id), map.len()), (ids.get(id), ids.len()));
        }
        for (id, sent) in &map {
            prop_assert_eq!(Some(sent), ids.get(*id));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn it_does_what_a_map_does(steps in proptest::collection::vec((any::<u16>(), any::<u8>(), 0u8..9), 0..80)) {
            check(steps.into_iter())?;
        }

        #[test]
        fn it_does_what_a_map_does_where_a_sender_counts(
            first in any::<u16>(),
            steps in proptest::collection::vec((-3i16..6, any::<u8>(), 0u8..40), 0..200),
        ) {
            let mut id = first;
            check(steps.into_iter().map(|(by, code, step)| {
                id = id.wrapping_add_signed(by);
                (id, code, step)
            }))?;
        }
    }
}
