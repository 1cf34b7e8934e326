//! Streams by their two endpoints, numbered as Wireshark numbers `udp.stream` and `tcp.stream`.

use crate::packet::{Endpoint, Packet, TcpHeader, Transport};
use rustc_hash::FxHashMap;

/// The two endpoints of a stream, smaller first, and its transport; of IPv4 in as few words as it takes, since finding a stream is fetching its key.
#[derive(Debug, Clone, Copy)]
enum Key {
    V4(KeyV4),
    V6(KeyV6),
}

type KeyV4 = (u64, u64);
type KeyV6 = (Endpoint, Endpoint, bool);

impl Key {
    /// The key of what is sent from one endpoint to another, and whether the greater one of the two sends.
    #[inline(always)]
    fn of(source: &Endpoint, destination: &Endpoint, is_tcp: bool) -> (Self, bool) {
        if let (Some(source), Some(destination)) = (source.v4(), destination.v4()) {
            let (low, high) = (source.min(destination), source.max(destination));
            return (Self::V4((low, high << 1 | u64::from(is_tcp))), source > destination);
        }
        let (low, high) = if source > destination { (destination, source) } else { (source, destination) };
        (Self::V6((*low, *high, is_tcp)), source > destination)
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
    /// Whether the greater one of the stream's two endpoints sends the packet: who that is the stream knows.
    pub is_from_greater: bool,
}

/// A stream's part, and its number in there.
type Home = (u32, u32);

/// What tells the connections of a port pair apart.
#[derive(Debug, Default)]
struct Opening {
    /// The stream's index in Wireshark's count.
    index: u32,
    /// Where the endpoints' sequence numbers begin, the smaller endpoint's first: that of the SYN, or the one before the first byte that was seen or
    /// acknowledged.
    starts: [Option<u32>; 2],
    /// Whether an endpoint has closed the connection, or reset it once both were open.
    is_ended: bool,
}

/// Where a SYN belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// To the stream that is known.
    Same,
    /// To a connection after it, which Wireshark counts as the same stream.
    After,
    /// To a new stream.
    New,
}

impl Opening {
    fn new(index: u32, is_from_greater: bool, transport: &Transport) -> Self {
        let mut opening = Self { index, ..Self::default() };
        if let Transport::Tcp(header) = transport {
            let is_syn = header.has(TcpHeader::SYN);
            opening.learn(is_from_greater, header.sequence.wrapping_sub(u32::from(!is_syn)), header);
        }
        opening
    }

    /// What a packet of the connection tells first counts.
    fn learn(&mut self, is_from_greater: bool, start: u32, header: &TcpHeader) {
        let acknowledged = header.has(TcpHeader::ACK).then(|| header.acknowledgment.wrapping_sub(1));
        let [low, high] = &mut self.starts;
        let (mine, peers) = if is_from_greater { (high, low) } else { (low, high) };
        mine.get_or_insert(start);
        *peers = peers.or(acknowledged);
    }

    /// Follows a connection's end.
    fn end(&mut self, header: &TcpHeader) {
        // a RST that answers a SYN ends nothing: the same SYN may come again
        let is_open = self.starts.iter().all(Option::is_some);
        self.is_ended |= header.has(TcpHeader::FIN) || header.has(TcpHeader::RST) && is_open;
    }

    /// Where a SYN belongs, by Wireshark's rule (a SYN without ACK whose sequence number is another one opens a stream). What Wireshark does not count,
    /// but is another connection all the same, is a SYN with the same number once the connection has ended, and a SYN-ACK with another number that does
    /// not answer this connection's SYN either.
    fn turn(&mut self, is_from_greater: bool, header: &TcpHeader) -> Turn {
        let [low, high] = self.starts;
        let (mine, peers) = if is_from_greater { (high, low) } else { (low, high) };
        let is_answer = header.has(TcpHeader::ACK);
        let is_other = mine.is_some_and(|start| start != header.sequence);
        let is_other_answer = is_answer && peers.is_some_and(|start| start != header.acknowledgment.wrapping_sub(1));
        match (is_other, is_answer) {
            (true, false) => Turn::New,
            (true, true) if is_other_answer => Turn::After,
            (false, false) if self.is_ended => Turn::After,
            _ => {
                self.learn(is_from_greater, header.sequence, header);
                Turn::Same
            }
        }
    }
}

/// Finds the stream of a packet, in one of several parts.
#[derive(Debug, Default)]
pub struct StreamTable {
    v4: FxHashMap<KeyV4, Home>,
    v6: FxHashMap<KeyV6, Home>,
    /// How each stream began, by part.
    openings: Vec<Vec<Opening>>,
    udp_streams: u32,
    tcp_streams: u32,
}

impl StreamTable {
    /// Finds the stream of a packet and writes it where it is to stay; `part` is asked where a new one belongs. A SYN may open the port pair anew.
    #[inline(always)]
    pub fn seat(&mut self, packet: &Packet, part: impl FnOnce() -> u32, seat: &mut Seat) {
        let is_tcp = packet.transport != Transport::Udp;
        let (key, is_from_greater) = Key::of(&packet.source, &packet.destination, is_tcp);
        let known = self.get(&key);
        let turn = known.map_or(Turn::New, |home| self.turn(home, is_from_greater, &packet.transport));
        let ((part, place), opens) = match (known, turn) {
            (Some(home), Turn::Same) => (home, None),
            (Some(home), Turn::After) => {
                let index = self.opening(home).map_or(0, |opening| opening.index);
                self.open(key, part(), Opening::new(index, is_from_greater, &packet.transport))
            }
            _ => {
                let index = self.count(is_tcp);
                self.open(key, part(), Opening::new(index, is_from_greater, &packet.transport))
            }
        };
        *seat = Seat { part, place, opens, is_from_greater };
    }

    /// The seat of what one endpoint sends to another, where they have a stream.
    #[must_use]
    pub fn find(&self, one: &Endpoint, other: &Endpoint, is_tcp: bool) -> Option<Seat> {
        let (key, is_from_greater) = Key::of(one, other, is_tcp);
        let (part, place) = self.get(&key)?;
        Some(Seat { part, place, opens: None, is_from_greater })
    }

    #[inline(always)]
    fn get(&self, key: &Key) -> Option<Home> {
        match key {
            Key::V4(key) => self.v4.get(key),
            Key::V6(key) => self.v6.get(key),
        }
        .copied()
    }

    fn opening(&mut self, (part, place): Home) -> Option<&mut Opening> {
        self.openings.get_mut(part as usize)?.get_mut(place as usize)
    }

    /// Where a packet of a port pair that is known belongs.
    #[inline]
    fn turn(&mut self, home: Home, is_from_greater: bool, transport: &Transport) -> Turn {
        match transport {
            Transport::Tcp(header) if header.has(TcpHeader::SYN | TcpHeader::FIN | TcpHeader::RST) => {
                self.rare_turn(home, is_from_greater, header)
            }
            _ => Turn::Same,
        }
    }

    fn rare_turn(&mut self, home: Home, is_from_greater: bool, header: &TcpHeader) -> Turn {
        let Some(opening) = self.opening(home) else { return Turn::Same };
        let turn = if header.has(TcpHeader::SYN) { opening.turn(is_from_greater, header) } else { Turn::Same };
        if turn == Turn::Same {
            opening.end(header);
        }
        turn
    }

    /// The next index in Wireshark's count.
    const fn count(&mut self, is_tcp: bool) -> u32 {
        let count = if is_tcp { &mut self.tcp_streams } else { &mut self.udp_streams };
        *count += 1;
        *count - 1
    }

    fn open(&mut self, key: Key, part: u32, opening: Opening) -> (Home, Option<u32>) {
        let opens = Some(opening.index);
        if self.openings.len() <= part as usize {
            self.openings.resize_with(part as usize + 1, Vec::new);
        }
        let place = self.openings.get_mut(part as usize).map_or(0, |openings| {
            openings.push(opening);
            u32::try_from(openings.len() - 1).unwrap_or(u32::MAX)
        });
        let home = (part, place);
        match key {
            Key::V4(key) => self.v4.insert(key, home),
            Key::V6(key) => self.v6.insert(key, home),
        };
        (home, opens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Address;

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
