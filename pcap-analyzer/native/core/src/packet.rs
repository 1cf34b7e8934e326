//! What the lower rooms (capture, link, network, transport headers) hand to the upper ones: a datagram or segment with its frame's byte split.

use crate::span::Origin;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Deref;

/// A network address. IPv4 stays IPv4, so that it prints and compares as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// IPv4 (RFC 791).
    V4([u8; 4]),
    /// IPv6 (RFC 8200).
    V6([u8; 16]),
}

impl Address {
    /// Whether it is a multicast address (224.0.0.0/4, ff00::/8) or the IPv4 limited broadcast.
    #[must_use]
    pub const fn is_multicast(&self) -> bool {
        match self {
            Self::V4([first, ..]) => *first >= 224 && *first < 240 || matches!(self, Self::V4([255, 255, 255, 255])),
            Self::V6([first, ..]) => *first == 0xff,
        }
    }
}

impl Default for Address {
    fn default() -> Self {
        Self::V4([0; 4])
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::V4(octets) => Ipv4Addr::from(octets).fmt(f),
            Self::V6(octets) => Ipv6Addr::from(octets).fmt(f),
        }
    }
}

/// An address and a UDP or TCP port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Endpoint {
    /// The address.
    pub address: Address,
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// Address and port of IPv4 in one number, which is compared in one step, and is the greater one where the endpoint is: packets of many streams come in
    /// no order that a processor could guess.
    #[inline(always)]
    #[must_use]
    pub const fn v4(&self) -> Option<u64> {
        match self.address {
            Address::V4(address) => Some((u32::from_be_bytes(address) as u64) << 16 | self.port as u64),
            Address::V6(_) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Address::V4(_) => write!(f, "{}:{}", self.address, self.port),
            Address::V6(_) => write!(f, "[{}]:{}", self.address, self.port),
        }
    }
}

/// Bytes of a packet's frames outside its UDP or TCP payload. With `payload_bytes` of the packet they add up to the frames' length on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers {
    /// Link layer: Ethernet with its VLAN tags, Linux cooked, 802.15.4, 802.11 with radiotap …, and a frame check sequence.
    pub link_bytes: u32,
    /// Padding and trailers behind the IP packet.
    pub padding_bytes: u32,
    /// IP headers, options and extension headers, compressed ones at their compressed length; of tunnels the outer headers too.
    pub ip_bytes: u32,
    /// UDP or TCP header with options.
    pub transport_bytes: u32,
    /// Of bytes that a record of a security protocol holds: what the record adds, its header, nonce, tag and padding.
    pub security_bytes: u32,
    /// Of bytes that a message of another protocol carries: that message's own bytes, a WebSocket frame's header.
    pub carrier_bytes: u32,
    /// Of bytes that are known as they were before compression: how many they are on the wire.
    pub compressed_bytes: u32,
}

/// TCP header fields that reassembly needs (RFC 9293 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpHeader {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number; meaningful with ACK set.
    pub acknowledgment: u32,
    /// Control bits CWR ECE URG ACK PSH RST SYN FIN, FIN lowest.
    pub flags: u8,
    /// Window as in the header, not scaled.
    pub window: u16,
    /// Maximum segment size option, on a SYN.
    pub maximum_segment_bytes: Option<u16>,
}

impl TcpHeader {
    /// FIN control bit.
    pub const FIN: u8 = 0x01;
    /// SYN control bit.
    pub const SYN: u8 = 0x02;
    /// RST control bit.
    pub const RST: u8 = 0x04;
    /// ACK control bit.
    pub const ACK: u8 = 0x10;

    /// Whether any of the bits in `mask` is set.
    #[inline]
    #[must_use]
    pub const fn has(&self, mask: u8) -> bool {
        self.flags & mask != 0
    }
}

/// The transport protocol of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP (RFC 768).
    #[default]
    Udp,
    /// TCP (RFC 9293).
    Tcp(TcpHeader),
}

/// Two packets of one stream, or fragments of one datagram, that are alike and of one IP identification, closer than this in time: the capture took one
/// of them twice (traps 7, 60).
pub(crate) const COPY_NS: u64 = 1_000_000;

/// A UDP datagram or TCP segment, whole (reassembled from IP or 6LoWPAN fragments where it was fragmented). Its frames, times and bytes are had by
/// `Deref`.
///
/// Invariant: `headers.link_bytes + padding_bytes + ip_bytes + transport_bytes + payload_bytes` is the sum of the lengths on the wire of its frames.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packet {
    /// What its payload's bytes remember of it.
    pub origin: Origin,
    /// Frames of earlier fragments, in capture order; none as a rule.
    pub earlier_frames: Option<Box<[u64]>>,
    /// Sender.
    pub source: Endpoint,
    /// Receiver.
    pub destination: Endpoint,
    /// UDP, or TCP with its header.
    pub transport: Transport,
    /// Whether the link layer sent its frame again, which holds no other packet then.
    pub is_sent_again: bool,
}

impl Packet {
    /// Whether its IP identification tells it from another packet with the same bytes.
    #[inline]
    #[must_use]
    pub const fn is_identified(&self) -> bool {
        self.origin.ip_identification.is_some()
    }

    /// Its frames: more than one where it was fragmented.
    #[inline]
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.earlier_frames.as_ref().map_or(1, |earlier| earlier.len() as u32 + 1)
    }
}

impl Deref for Packet {
    type Target = Origin;
    #[inline]
    fn deref(&self) -> &Origin {
        &self.origin
    }
}

/// What an ICMP error tells of the packet that it quotes (RFC 792, RFC 4443 §3): it was not delivered. The quote is no packet itself (trap 84).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Sender of the packet that is quoted.
    pub source: Endpoint,
    /// Its receiver.
    pub destination: Endpoint,
    /// Whether it is a TCP segment, not a UDP datagram.
    pub is_tcp: bool,
    /// Why, in the standard's words.
    pub why: &'static str,
}

/// A frame that ends below UDP and TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherFrame {
    /// What it is, by Wireshark's filter name ("arp", "icmp", "icmpv6", "sctp", "wpan", "eth" …).
    pub protocol: &'static str,
    /// Its length on the wire in bytes; of a reassembled datagram that of all its frames.
    pub frame_bytes: u64,
    /// Frames that it takes; more than one where it was fragmented.
    pub frames: u32,
    /// The packet that it refuses, where it is an ICMP error.
    pub refuses: Option<Refusal>,
}

/// What the frames of a datagram hold, while their envelopes are taken off. Signed, because a compressed header (6LoWPAN) weighs less than the header
/// that is read in its place.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// See [`Headers::link_bytes`].
    pub(crate) link: i64,
    /// See [`Headers::padding_bytes`].
    pub(crate) padding: i64,
    /// See [`Headers::ip_bytes`].
    pub(crate) ip: i64,
    /// See [`Headers::transport_bytes`].
    pub(crate) transport: i64,
    /// Length of all frames on the wire.
    pub(crate) frame_bytes: u64,
    /// Frames before the last one, in capture order.
    pub(crate) earlier: Vec<u64>,
    /// Capture time of the first frame in nanoseconds.
    pub(crate) time_first_ns: i64,
}

impl Account {
    /// Adds the account of the frames before.
    pub(crate) fn follow(&mut self, before: Self) {
        if before.earlier.is_empty() {
            return;
        }
        self.link += before.link;
        self.padding += before.padding;
        self.ip += before.ip;
        self.transport += before.transport;
        self.frame_bytes += before.frame_bytes;
        self.time_first_ns = before.time_first_ns;
        let own = std::mem::replace(&mut self.earlier, before.earlier);
        self.earlier.extend(own);
    }

    /// The sums as they stand in a packet; none where a sum is beyond what can be on a wire.
    pub(crate) fn headers(&self) -> Option<Headers> {
        Some(Headers {
            link_bytes: u32::try_from(self.link).ok()?,
            padding_bytes: u32::try_from(self.padding).ok()?,
            ip_bytes: u32::try_from(self.ip).ok()?,
            transport_bytes: u32::try_from(self.transport).ok()?,
            ..Headers::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_one_of_two_endpoints_is_the_one_with_the_greater_number() {
        let addresses = [[10, 0, 0, 1], [10, 0, 1, 0], [9, 255, 255, 255], [200, 0, 0, 0]].map(Address::V4);
        let endpoints: Vec<Endpoint> =
            addresses.into_iter().flat_map(|address| [1, 256, 5683].map(|port| Endpoint { address, port })).collect();

        for one in &endpoints {
            for other in &endpoints {
                assert_eq!(one.cmp(other), one.v4().cmp(&other.v4()), "{one} {other}");
            }
        }
    }
}
