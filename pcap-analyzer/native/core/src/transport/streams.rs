//! Streams by their two endpoints, numbered as Wireshark numbers `udp.stream` and `tcp.stream`.

use crate::packet::{Address, Endpoint, Packet, TcpHeader, Transport};
use rustc_hash::FxHashMap;

/// The two endpoints of a stream, smaller first, and its transport; of IPv4 in as few words as it takes, since finding a stream is fetching its key.
#[derive(Debug, Clone, Copy)]
enum Key {
    V4(KeyV4),
    V6(KeyV6),
}

type KeyV4 = (u64, u64);
type KeyV6 = (Address, Address, u64);

impl Key {
    #[inline]
    fn new(low: &Endpoint, high: &Endpoint, is_tcp: bool) -> Self {
        let ports = u64::from(low.port) << 32 | u64::from(high.port) << 16 | u64::from(is_tcp);
        if let (Address::V4(low), Address::V4(high)) = (low.address, high.address) {
            return Self::V4((u64::from(u32::from_be_bytes(low)) << 32 | u64::from(u32::from_be_bytes(high)), ports));
        }
        Self::V6((low.address, high.address, ports))
    }

    fn is_tcp(&self) -> bool {
        let (Self::V4((_, ports)) | Self::V6((_, _, ports))) = self;
        ports & 1 == 1
    }
}

/// Where a packet belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seat {
    /// Which part of the streams its stream is of.
    pub part: u32,
    /// Number of the stream in its part.
    pub place: u32,
    /// The stream's index in Wireshark's count, where the packet opens it.
    pub opens: Option<u32>,
}

/// A stream's part, and its number in there.
type Home = (u32, u32);

/// Finds the stream of a packet, in one of several parts.
#[derive(Debug, Default)]
pub struct StreamTable {
    v4: FxHashMap<KeyV4, Home>,
    v6: FxHashMap<KeyV6, Home>,
    /// Sequence numbers of the SYN that the endpoints of each stream sent, the smaller endpoint's first; by part.
    syns: Vec<Vec<[Option<u32>; 2]>>,
    udp_streams: u32,
    tcp_streams: u32,
}

impl StreamTable {
    /// Finds the stream of a packet and writes it where it is to stay; `part` is asked where a new one belongs. A SYN opens the port pair anew, by Wireshark's rule, where its sequence number is
    /// another than that of the SYN before it.
    #[inline(always)]
    pub fn seat(&mut self, packet: &Packet, part: impl FnOnce() -> u32, seat: &mut Seat) {
        let (source, destination) = (&packet.source, &packet.destination);
        let side = usize::from(source > destination);
        let (low, high) = if side == 0 { (source, destination) } else { (destination, source) };
        let (is_tcp, syn) = match packet.transport {
            Transport::Udp => (false, None),
            Transport::Tcp(header) => (true, header.has(TcpHeader::SYN).then_some(header)),
        };
        let key = Key::new(low, high, is_tcp);
        match self.get(&key) {
            Some(home) if syn.is_none_or(|header| self.belongs(home, side, &header)) => {
                (seat.part, seat.place) = home;
                seat.opens = None;
            }
            _ => *seat = self.open(key, part(), side, syn.as_ref()),
        }
    }

    /// The stream between two endpoints, where there is one.
    #[must_use]
    pub fn find(&self, one: &Endpoint, other: &Endpoint, is_tcp: bool) -> Option<Seat> {
        let (low, high) = if one > other { (other, one) } else { (one, other) };
        let (part, place) = self.get(&Key::new(low, high, is_tcp))?;
        Some(Seat { part, place, opens: None })
    }

    #[inline(always)]
    fn get(&self, key: &Key) -> Option<Home> {
        match key {
            Key::V4(key) => self.v4.get(key),
            Key::V6(key) => self.v6.get(key),
        }
        .copied()
    }

    fn open(&mut self, key: Key, part: u32, side: usize, syn: Option<&TcpHeader>) -> Seat {
        let count = if key.is_tcp() { &mut self.tcp_streams } else { &mut self.udp_streams };
        let opens = Some(*count);
        *count += 1;
        if self.syns.len() <= part as usize {
            self.syns.resize_with(part as usize + 1, Vec::new);
        }
        let place = self.syns.get_mut(part as usize).map_or(0, |syns| {
            syns.push([None; 2]);
            u32::try_from(syns.len() - 1).unwrap_or(u32::MAX)
        });
        let home = (part, place);
        syn.map(|header| self.belongs(home, side, header));
        match key {
            Key::V4(key) => self.v4.insert(key, home),
            Key::V6(key) => self.v6.insert(key, home),
        };
        Seat { part, place, opens }
    }

    /// Whether a SYN belongs to this connection; its sequence number is remembered.
    fn belongs(&mut self, (part, place): Home, side: usize, header: &TcpHeader) -> bool {
        let syns = self.syns.get_mut(part as usize).and_then(|syns| syns.get_mut(place as usize));
        let Some(known) = syns.and_then(|syns| syns.get_mut(side)) else { return true };
        let is_known = *known.get_or_insert(header.sequence) == header.sequence;
        is_known || header.has(TcpHeader::ACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Endpoint = Endpoint { address: Address::V4([10, 0, 0, 1]), port: 40_000 };
    const B: Endpoint = Endpoint { address: Address::V4([10, 0, 0, 2]), port: 1883 };

    fn packet(source: Endpoint, destination: Endpoint, transport: Transport) -> Packet {
        Packet { source, destination, transport, ..Packet::default() }
    }

    fn seat(table: &mut StreamTable, packet: &Packet, part: u32) -> Seat {
        let mut seat = Seat::default();
        table.seat(packet, || part, &mut seat);
        seat
    }

    fn tcp(sequence: u32, flags: u8) -> Transport {
        Transport::Tcp(TcpHeader { sequence, flags, ..TcpHeader::default() })
    }

    #[test]
    fn both_directions_have_one_seat_and_each_transport_its_own_count() {
        let mut table = StreamTable::default();
        let packets = [
            packet(A, B, tcp(1, TcpHeader::SYN)),
            packet(B, A, tcp(9, TcpHeader::SYN | TcpHeader::ACK)),
            packet(A, B, Transport::Udp),
            packet(A, B, tcp(2, TcpHeader::ACK)),
        ];

        let seats = packets.map(|packet| seat(&mut table, &packet, 0)).map(|seat| (seat.place, seat.opens));

        assert_eq!([(0, Some(0)), (0, None), (1, Some(0)), (0, None)], seats);
    }

    #[test]
    fn another_syn_opens_the_port_pair_anew_and_the_same_one_again_does_not() {
        let mut table = StreamTable::default();
        let seats = [1, 1, 7].map(|sequence| seat(&mut table, &packet(A, B, tcp(sequence, TcpHeader::SYN)), 0).place);

        assert_eq!([0, 0, 1], seats);
    }

    #[test]
    fn streams_are_counted_together_and_have_their_places_by_part() {
        let mut table = StreamTable::default();
        let mut seat = |destination, part| seat(&mut table, &packet(A, destination, Transport::Udp), part);
        let others = [1, 2, 3].map(|port| Endpoint { port, ..B });

        let seats = [(others[0], 1), (others[1], 0), (others[2], 1), (others[0], 0)].map(|(other, part)| seat(other, part));

        let expected = [(1, 0, Some(0)), (0, 0, Some(1)), (1, 1, Some(2)), (1, 0, None)];
        assert_eq!(expected, seats.map(|seat| (seat.part, seat.place, seat.opens)));
        assert_eq!(Some((1, 1)), table.find(&others[2], &A, false).map(|seat| (seat.part, seat.place)));
    }
}
