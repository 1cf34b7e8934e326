//! Reading ahead: what packets will need of streams, conversations and sessions is fetched for several at once.

use super::{Back, Conversation};
use crate::packet::Transport;
use crate::pipeline::front::Arrival;
use crate::protocols::framing::Half;
use std::hint::black_box;

/// Packets looked at together, see [`Back::touch`].
pub(super) const GROUP: usize = 16;

impl Back<'_> {
    /// Reads a little of what each packet of a group will need: the processor then fetches all of it at once, not one after the other, which
    /// makes captures of many streams faster. It does so step by step: where a step reads, and what it decides, is known from the steps before it,
    /// since behind a decision that was guessed wrong nothing is fetched at once.
    pub(super) fn touch<'a>(&self, group: impl Iterator<Item = &'a Arrival> + Clone) {
        let is_tcp = |arrival: &Arrival| arrival.packet.transport != Transport::Udp;
        for arrival in group.clone() {
            let Some(stream) = self.streams.get(arrival.seat.place) else { continue };
            black_box(stream.touch());
            if is_tcp(arrival) {
                black_box(stream.touch_tcp());
            }
        }
        let mut talks = [None; GROUP];
        for (talk, arrival) in talks.iter_mut().zip(group) {
            let Some(stream) = self.streams.get(arrival.seat.place) else { continue };
            let Some(known) = stream.known else { continue };
            let Some(conversation) = self.conversations.get(known.conversation) else { continue };
            *talk = Some((conversation, self.rooms.books.get(known.session), stream.side(arrival.seat), is_tcp(arrival)));
        }
        for &(conversation, session, from, is_tcp) in talks.iter().flatten() {
            black_box(conversation.touch());
            if is_tcp {
                black_box(conversation.halves.each_ref().map(Half::touch));
            }
            let Some(session) = session else { continue };
            black_box(session.touch(from));
            if is_tcp {
                black_box(session.touch_control(from));
            }
        }
        for &(conversation, _, from, _) in talks.iter().flatten() {
            black_box((conversation.decoder.touch(from), conversation.pairing.touch(from)));
        }
        for &(conversation, session, from, _) in talks.iter().flatten() {
            black_box(conversation.pairing.touch_lists());
            black_box(session.map(|session| session.touch_lists(from)));
        }
        for &(_, session, from, _) in talks.iter().flatten() {
            black_box(session.map(|session| session.touch_samples(from)));
        }
    }
}

impl Conversation {
    /// Reads a little of what each message needs.
    #[inline]
    fn touch(&self) -> bool {
        self.told.is_some()
    }
}
