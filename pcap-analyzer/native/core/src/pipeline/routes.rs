//! Which thread takes which stream, where several share the streams of a capture.

use super::Options;
use crate::packet::{Endpoint, Packet, Transport};
use crate::protocols::{choose, DecodeAs};
use rustc_hash::FxHashSet;

/// Deals streams out in turns. All that may have to do with another stream's conversation goes to one thread: a peer whose address changes goes on in a
/// stream of its own (RFC 9146), and answers to a group's request come in one for each member (RFC 7252 §8).
pub struct Routes {
    parts: u32,
    next: u32,
    decode_as: Vec<DecodeAs>,
    /// Endpoints that may be talked to in streams of their own by peers that are known from elsewhere.
    bound: FxHashSet<Endpoint>,
}

/// The part of all that is bound to each other.
const BOUND: u32 = 0;

impl Routes {
    /// Routes to so many threads.
    pub fn new(options: &Options, parts: u32) -> Self {
        Self { parts, next: 0, decode_as: options.decode_as.clone(), bound: FxHashSet::default() }
    }

    /// How many threads there are.
    pub const fn parts(&self) -> u32 {
        self.parts
    }

    /// The part for the stream that begins with this packet.
    pub fn part(&mut self, packet: &Packet, payload: &[u8]) -> u32 {
        if self.parts == 1 {
            return 0;
        }
        if packet.transport == Transport::Udp && !self.is_free(packet, payload) {
            self.bound.extend([packet.source, packet.destination]);
            return BOUND;
        }
        self.next = (self.next + 1) % self.parts;
        self.next
    }

    /// Whether a stream of datagrams is a conversation by itself.
    fn is_free(&self, packet: &Packet, payload: &[u8]) -> bool {
        let chosen = || choose(&self.decode_as, packet, payload).is_some_and(|(protocol, _)| protocol.connection_id.is_none());
        !packet.destination.address.is_multicast() && !self.bound.contains(&packet.destination) && !payload.is_empty() && chosen()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Address;

    const GET: &[u8] = &[0x40, 1, 0, 1];
    const RECORD_WITH_CONNECTION_ID: &[u8] = &[25, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 7, 0, 1, 0];

    fn udp(source: u16, destination: ([u8; 4], u16)) -> Packet {
        let endpoint = |address, port| Endpoint { address: Address::V4(address), port };
        Packet { source: endpoint([10, 0, 0, 1], source), destination: endpoint(destination.0, destination.1), ..Packet::default() }
    }

    fn routes() -> Routes {
        Routes::new(&Options::default(), 3)
    }

    #[test]
    fn streams_that_are_known_to_be_by_themselves_are_dealt_out_in_turns() {
        let mut routes = routes();

        assert_eq!([1, 2, 0, 1], [1, 2, 3, 4].map(|port| routes.part(&udp(port, ([10, 0, 0, 2], 5683)), GET)));
    }

    #[test]
    fn a_group_and_who_answers_it_stay_together() {
        let mut routes = routes();
        let requester = ([10, 0, 0, 1], 40_000);

        assert_eq!(BOUND, routes.part(&udp(40_000, ([224, 0, 1, 187], 5683)), GET));
        assert_eq!([BOUND; 3], [1, 2, 3].map(|port| routes.part(&udp(port, requester), GET)));
    }

    #[test]
    fn peers_that_may_move_stay_together_whatever_they_seem_to_send() {
        let mut routes = routes();
        let server = ([10, 0, 0, 2], 5684);

        assert_eq!(BOUND, routes.part(&udp(40_000, server), RECORD_WITH_CONNECTION_ID));
        assert_eq!([BOUND; 3], [1, 2, 3].map(|port| routes.part(&udp(port, server), GET)));
    }

    #[test]
    fn what_is_not_known_at_once_stays_together() {
        let mut routes = routes();
        let server = ([10, 0, 0, 2], 9);

        assert_eq!([BOUND, BOUND], [(1, &[][..]), (2, &[0xff; 9])].map(|(port, payload)| routes.part(&udp(port, server), payload)));
    }
}
