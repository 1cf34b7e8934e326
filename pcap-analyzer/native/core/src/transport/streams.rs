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
    v4: FxHashMap<KeyV4, u32>,
    v6: FxHashMap<KeyV6, u32>,
    /// Sequence numbers of the SYN that the endpoints of each stream sent, the smaller endpoint's first.
    syns: Vec<[Option<u32>; 2]>,
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
        match self.get(&key) {
            Some(place) if syn.is_none_or(|header| self.belongs(place, side, &header)) => Seat { place, opens: None },
            _ => self.open(key, is_tcp, side, syn.as_ref()),
        }
    }

    /// The stream between two endpoints, where there is one.
    #[must_use]
    pub fn find(&self, one: &Endpoint, other: &Endpoint, is_tcp: bool) -> Option<u32> {
        let (low, high) = if one > other { (other, one) } else { (one, other) };
        self.get(&Key::new(low, high, is_tcp))
    }

    #[inline]
    fn get(&self, key: &Key) -> Option<u32> {
        match key {
            Key::V4(key) => self.v4.get(key),
            Key::V6(key) => self.v6.get(key),
        }
        .copied()
    }

    fn open(&mut self, key: Key, is_tcp: bool, side: usize, syn: Option<&TcpHeader>) -> Seat {
        let count = if is_tcp { &mut self.tcp_streams } else { &mut self.udp_streams };
        let opens = Some(*count);
        *count += 1;
        let place = self.udp_streams + self.tcp_streams - 1;
        self.syns.push([None; 2]);
        syn.map(|header| self.belongs(place, side, header));
        match key {
            Key::V4(key) => self.v4.insert(key, place),
            Key::V6(key) => self.v6.insert(key, place),
        };
        Seat { place, opens }
    }

    /// Whether a SYN belongs to this connection; its sequence number is remembered.
    fn belongs(&mut self, place: u32, side: usize, header: &TcpHeader) -> bool {
        let Some(known) = self.syns.get_mut(place as usize).and_then(|syns| syns.get_mut(side)) else { return true };
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
