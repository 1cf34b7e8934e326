//! IP: one header with its options or extension headers at a time, and fragments back into datagrams.

pub mod fragments;
pub mod icmp;
mod ipv4;
mod ipv6;

use crate::layer::Layer;
use crate::packet::Address;

/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Protocol number of the authentication header.
pub const AUTHENTICATION: u8 = 51;
/// Protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;

/// An IP packet with its header taken off.
#[derive(Debug, Clone, Copy)]
pub struct Ip<'a> {
    /// Sender.
    pub source: Address,
    /// Receiver.
    pub destination: Address,
    /// Protocol number of what follows (<https://www.iana.org/assignments/protocol-numbers>).
    pub protocol: u8,
    /// Identification (IPv4).
    pub identification: Option<u16>,
    /// Header with options or extension headers in bytes.
    pub header_bytes: u32,
    /// What stands behind the packet in its envelope, in bytes.
    pub padding_bytes: u32,
    /// What follows.
    pub rest: Layer<'a>,
    /// Where it belongs, where it is a fragment.
    pub fragment: Option<Fragment>,
    /// The length that the header claims, where it is more than the envelope holds.
    pub claimed_bytes: Option<u32>,
}

/// The fields of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Identification: 16 bits in IPv4, 32 in IPv6.
    pub identification: u32,
    /// Where it begins in the datagram, in bytes.
    pub offset: u32,
    /// Whether others follow it.
    pub more: bool,
}

/// Why an IP header was not taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Cut by the snap length; the name of the layer.
    Cut(&'static str),
    /// It breaks its format, or is no IP; the name of the layer.
    Malformed(&'static str),
}

/// Takes an IPv4 or IPv6 header off.
///
/// # Errors
/// Where it was not captured whole or contradicts itself.
#[inline(always)]
pub fn open(layer: Layer<'_>) -> Result<Ip<'_>, Refused> {
    match layer.u8(0).map(|first| first >> 4) {
        Some(4) => ipv4::open(layer),
        Some(6) => ipv6::open(layer),
        Some(_) => Err(Refused::Malformed("ip")),
        None => Err(Refused::Cut("ip")),
    }
}

/// Takes the extension headers of a reassembled IPv6 datagram off: protocol, their length, and what follows.
///
/// # Errors
/// Where they were not captured whole or contradict themselves.
pub fn open_extensions(protocol: u8, layer: Layer<'_>) -> Result<(u8, u32, Layer<'_>), Refused> {
    let chain = ipv6::extensions(protocol, layer)?;
    Ok((chain.protocol, chain.header_bytes, chain.rest))
}

/// Wireshark's filter name of an IP protocol that is not opened.
#[must_use]
pub const fn protocol_name(protocol: u8) -> &'static str {
    match protocol {
        ICMP => "icmp",
        2 => "igmp",
        47 => "gre",
        50 => "esp",
        AUTHENTICATION => "ah",
        ICMPV6 => "icmpv6",
        59 => "ipv6.nonxt",
        88 => "eigrp",
        89 => "ospf",
        103 => "pim",
        112 => "vrrp",
        115 => "l2tp",
        132 => "sctp",
        136 => "udplite",
        137 => "mpls",
        _ => "ip",
    }
}
