//! Streams by their two endpoints, numbered as Wireshark numbers `udp.stream` and `tcp.stream`.

use crate::packet::{Address, Endpoint, Packet, TcpHeader, Transport};
use rustc_hash::FxHashMap;

/// The two endpoints of a stream, smaller first, with what tells streams of the same numbers apart: transport and IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    low: u128,
    high: u128,
    ports_and_kind: u64,
}

impl Key {
    #[inline]
    fn new(low: &Endpoint, high: &Endpoint, is_tcp: bool) -> Self {
        let is_v6 = matches!(low.address, Address::V6(_));
        let kind = u64::from(is_tcp) << 1 | u64::from(is_v6);
        let ports_and_kind = u64::from(low.port) << 32 | u64::from(high.port) << 16 | kind;
        Self { low: number(&low.address), high: number(&high.address), ports_and_kind }
    }
}

#[inline]
fn number(address: &Address) -> u128 {
    match *address {
        Address::V4(octets) => u32::from_be_bytes(octets).into(),
        Address::V6(octets) => u128::from_be_bytes(octets),
    }
}

/// The stream that a key stands for now.
#[derive(Debug)]
struct Entry {
    place: u32,
    /// Sequence numbers of the SYN that the endpoints sent, the smaller endpoint's first.
    syn: [Option<u32>; 2],
}

/// Where a packet belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seat {
    /// Number of the stream among all streams.
    pub place: u32,
    /// The stream's index in Wireshark's count, where the packet opens it.
    pub opens: Option<u32>,
}

/// Finds the stream of a packet.
#[derive(Debug, Default)]
pub struct StreamTable {
    entries: FxHashMap<Key, Entry>,
    udp_streams: u32,
    tcp_streams: u32,
}

impl StreamTable {
    /// The stream of a packet. A SYN opens the port pair anew, by Wireshark's rule, where its sequence number is another than that of the SYN
    /// before it.
    #[inline]
    pub fn seat(&mut self, packet: &Packet) -> Seat {
        let (source, destination) = (&packet.source, &packet.destination);
        let side = usize::from(source > destination);
        let (low, high) = if side == 0 { (source, destination) } else { (destination, source) };
        let (is_tcp, syn) = match packet.transport {
            Transport::Udp => (false, None),
            Transport::Tcp(header) => (true, header.has(TcpHeader::SYN).then_some(header)),
        };
        let key = Key::new(low, high, is_tcp);
        if let Some(entry) = self.entries.get_mut(&key) {
            if syn.is_none_or(|header| entry.belongs(side, &header)) {
                return Seat { place: entry.place, opens: None };
            }
        }
        self.open(key, is_tcp, side, syn.as_ref())
    }

    /// The stream between two endpoints, where there is one.
    #[must_use]
    pub fn find(&self, one: &Endpoint, other: &Endpoint, is_tcp: bool) -> Option<u32> {
        let (low, high) = if one > other { (other, one) } else { (one, other) };
        self.entries.get(&Key::new(low, high, is_tcp)).map(|entry| entry.place)
    }

    fn open(&mut self, key: Key, is_tcp: bool, side: usize, syn: Option<&TcpHeader>) -> Seat {
        let count = if is_tcp { &mut self.tcp_streams } else { &mut self.udp_streams };
        let opens = Some(*count);
        *count += 1;
        let place = self.udp_streams + self.tcp_streams - 1;
        let mut entry = Entry { place, syn: [None; 2] };
        syn.map(|header| entry.belongs(side, header));
        self.entries.insert(key, entry);
        Seat { place, opens }
    }
}

impl Entry {
    /// Whether a SYN belongs to this connection; its sequence number is remembered.
    fn belongs(&mut self, side: usize, header: &TcpHeader) -> bool {
        let Some(known) = self.syn.get_mut(side) else { return true };
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

        let seats = packets.map(|packet| table.seat(&packet)).map(|seat| (seat.place, seat.opens));

        assert_eq!([(0, Some(0)), (0, None), (1, Some(0)), (0, None)], seats);
    }

    #[test]
    fn another_syn_opens_the_port_pair_anew_and_the_same_one_again_does_not() {
        let mut table = StreamTable::default();
        let seats = [1, 1, 7].map(|sequence| table.seat(&packet(A, B, tcp(sequence, TcpHeader::SYN))).place);

        assert_eq!([0, 0, 1], seats);
    }
}
