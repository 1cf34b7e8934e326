//! Which protocol a stream speaks: the user's `-d` first, then ports, then what its bytes look like.

use super::{by_row, Carrier, Decoding, Input, Likely, Port, Protocol, Step, PROTOCOLS};
use crate::message::{Message, Side};
use crate::packet::Packet;
use crate::packet::Transport;

/// How a protocol was found, as in the table `sessions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// The user said so.
    DecodeAs,
    /// A port on which the protocol is expected, and bytes that do not speak against it.
    Port,
    /// Bytes that few other protocols send.
    Heuristic,
}

impl FoundBy {
    /// The name in the table `sessions`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DecodeAs => "decode-as",
            Self::Port => "port",
            Self::Heuristic => "heuristic",
        }
    }
}

/// A rule of the user's in tshark's syntax: `udp.port==5700,coap`, a range `tcp.port==1884-1890,mqtt`, or `tcp.port==1883,none`.
#[derive(Debug, Clone, Copy)]
pub struct DecodeAs {
    is_tcp: bool,
    first: u16,
    last: u16,
    protocol: Option<&'static Protocol>,
}

impl std::fmt::Debug for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.decode_as)
    }
}

impl DecodeAs {
    /// Reads a rule.
    ///
    /// # Errors
    /// One line for the user that names the rule, what is wrong, and what is possible.
    pub fn parse(rule: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("-d {rule}: {why} (write for example -d udp.port==5700,coap)");
        let (selector, name) = rule.split_once(',').ok_or_else(|| wrong("no comma"))?;
        let (field, ports) = selector.split_once("==").ok_or_else(|| wrong("no \"==\""))?;
        let is_tcp = match field.trim() {
            "tcp.port" => true,
            "udp.port" => false,
            _ => return Err(wrong("the selector is neither udp.port nor tcp.port")),
        };
        let number = |text: &str| text.trim().parse::<u16>().map_err(|_| wrong("a port is a number from 0 to 65535"));
        let (first, last) = match ports.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(ports)?, number(ports)?),
        };
        let protocol = match name.trim() {
            "none" | "data" => None,
            name => Some(by_name(name, is_tcp).ok_or_else(|| wrong(&unknown(name, is_tcp)))?),
        };
        Ok(Self { is_tcp, first, last, protocol })
    }

    fn covers(&self, is_tcp: bool, ports: [u16; 2]) -> bool {
        self.is_tcp == is_tcp && ports.iter().any(|&port| self.has(port))
    }

    fn has(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

fn by_name(name: &str, is_tcp: bool) -> Option<&'static Protocol> {
    PROTOCOLS.iter().copied().find(|row| is_carried(row, is_tcp) && (row.decode_as == name || row.name == name))
}

fn unknown(name: &str, is_tcp: bool) -> String {
    let names: Vec<&str> = PROTOCOLS.iter().filter(|row| is_carried(row, is_tcp)).map(|row| row.decode_as).collect();
    format!("no protocol \"{name}\" over {}, there are: {}, none", if is_tcp { "tcp" } else { "udp" }, names.join(", "))
}

const fn is_tcp(packet: &Packet) -> bool {
    matches!(packet.transport, Transport::Tcp(_))
}

fn is_carried(row: &Protocol, is_tcp: bool) -> bool {
    (row.carrier == Carrier::Stream) == is_tcp
}

/// UDP ports of well-known other protocols, whose random identifiers look like CoAP now and then (trap 80): DNS, DHCP, NTP, NetBIOS, SNMP,
/// ISAKMP, SSDP, STUN, mDNS, LLMNR, VXLAN, ZEP (IANA service name registry).
const OTHERS: &[u16] = &[53, 67, 68, 69, 123, 137, 138, 161, 162, 500, 514, 520, 546, 547, 1900, 4789, 5353, 5355, 17754];

/// The protocol of a stream, judged by the first bytes that one of its sides sends.
#[must_use]
pub fn choose(rules: &[DecodeAs], packet: &Packet, bytes: &[u8]) -> Option<(&'static Protocol, FoundBy)> {
    let (is_tcp, ports) = (is_tcp(packet), [packet.source.port, packet.destination.port]);
    if let Some(rule) = rules.iter().rev().find(|rule| rule.covers(is_tcp, ports)) {
        return rule.protocol.map(|protocol| (protocol, FoundBy::DecodeAs));
    }
    let candidates = || PROTOCOLS.iter().copied().filter(|row| is_carried(row, is_tcp));
    let by_port = candidates().find(|row| is_expected(row, ports) && is_possible(row, packet, bytes));
    if let Some(protocol) = by_port {
        return Some((protocol, FoundBy::Port));
    }
    if !is_tcp && ports.iter().any(|port| OTHERS.contains(port)) {
        return None;
    }
    candidates().find(|row| (row.probe)(bytes) == Likely::Yes).map(|protocol| (protocol, FoundBy::Heuristic))
}

/// The protocol that one of the ports speaks for, where a message of it begins within the first `places` bytes: for a stream whose start is not captured.
/// Its segments may all begin within messages.
#[must_use]
pub fn choose_within(
    rules: &[DecodeAs],
    decoding: &Decoding,
    packet: &Packet,
    bytes: &[u8],
    places: usize,
) -> Option<(&'static Protocol, FoundBy)> {
    let ports = [packet.source.port, packet.destination.port];
    if rules.iter().any(|rule| rule.covers(true, ports)) {
        return None;
    }
    let begins_in = |row: &Protocol| {
        let from = if is_port_of(row, packet.source.port) { Side::Server } else { Side::Client };
        let decoder = (row.decoder)(decoding);
        (0..places.min(bytes.len())).any(|at| decoder.is_boundary(bytes.get(at..).unwrap_or(&[]), from) == Some(true))
    };
    let found = PROTOCOLS.iter().copied().find(|row| is_carried(row, true) && is_expected(row, ports) && begins_in(row));
    found.map(|protocol| (protocol, FoundBy::Port))
}

/// Whether a packet's captured bytes may be the protocol's. That more of a stream may come is known to a probe, but it takes what it sees of a datagram for all
/// that was sent: where the snap length cut one, the decoder judges.
fn is_possible(row: &Protocol, packet: &Packet, bytes: &[u8]) -> bool {
    if (row.probe)(bytes) != Likely::No {
        return true;
    }
    let wire_bytes = packet.payload_bytes as usize;
    if row.carrier == Carrier::Stream || bytes.is_empty() || bytes.len() >= wire_bytes {
        return false;
    }
    let step = (row.decoder)(&Decoding::default()).next(Input { bytes, wire_bytes }, Side::Client, &mut Message::default());
    !matches!(step, Step::Malformed { .. })
}

/// The protocol of what another one carries: the one that it always carries, or else judged by the first bytes. What could be several protocols'
/// needs one of the ports to speak for it, and so do messages that have no length of their own in the records of a stream (trap 90).
#[must_use]
pub fn choose_inside(outer: &Protocol, ports: [u16; 2], bytes: &[u8]) -> Option<&'static Protocol> {
    if let Some(carried) = outer.carries {
        return by_row(carried);
    }
    let is_expected = |row: &Protocol| ports.iter().any(|&port| is_inside_port_of(row, port));
    let inner = || PROTOCOLS.iter().copied().filter(|row| !row.is_security);
    let is_own = |row: &&Protocol| row.carrier == outer.carrier;
    let in_records = inner().filter(|row| !is_own(row) && outer.carrier == Carrier::Stream && is_expected(row));
    let judged = inner().filter(is_own).chain(in_records).map(|row| ((row.probe)(bytes), row));
    judged
        .filter(|(likely, row)| *likely == Likely::Yes || (*likely == Likely::Maybe && is_expected(row)))
        .reduce(surer)
        .map(|(_, row)| row)
}

/// Whether `port` is one where the protocol is expected inside (D)TLS.
fn is_inside_port_of(row: &Protocol, port: u16) -> bool {
    row.ports.iter().any(|expected| matches!(expected, Port::Tls(number) | Port::Dtls(number) if *number == port))
}

/// The surer of two; the first where both are as sure.
fn surer<T>(one: (Likely, T), other: (Likely, T)) -> (Likely, T) {
    if other.0 > one.0 {
        other
    } else {
        one
    }
}

/// Names of the protocols that one of a stream's ports speaks for; none where a rule of the user's says what is there.
#[must_use]
pub fn expected(rules: &[DecodeAs], is_tcp: bool, ports: [u16; 2]) -> Vec<&'static str> {
    if rules.iter().any(|rule| rule.covers(is_tcp, ports)) {
        return Vec::new();
    }
    PROTOCOLS.iter().filter(|row| is_carried(row, is_tcp) && is_expected(row, ports)).map(|row| row.name).collect()
}

/// Whether one of a stream's ports is one of the protocol's.
fn is_expected(row: &Protocol, ports: [u16; 2]) -> bool {
    ports.iter().any(|&port| is_port_of(row, port))
}

/// Whether `port` is where a server of the protocol is expected: one of the protocol's ports, or of the user's rules for it.
#[must_use]
pub fn is_server_port(rules: &[DecodeAs], row: &Protocol, port: u16) -> bool {
    let is_of_row = |rule: &DecodeAs| rule.protocol.is_some_and(|protocol| protocol.decode_as == row.decode_as);
    is_port_of(row, port) || rules.iter().any(|rule| is_of_row(rule) && rule.has(port))
}

/// Whether `port` is one of the protocol's.
fn is_port_of(row: &Protocol, port: u16) -> bool {
    row.ports.iter().any(|expected| matches!(expected, Port::Udp(number) | Port::Tcp(number) if *number == port))
}

#[cfg(test)]
mod tests {
    use super::super::tls::TLS;
    use super::*;

    /// GET with message ID 1, token abcd and Uri-Path "time" (RFC 7252 §3); CSM, and behind it the same GET (RFC 8323 §3.2, §5.3).
    const GET: &[u8] = b"\x44\x01\0\x01abcd\xb4time";
    const CSM: &[u8] = b"\x40\xe1\x23\x10\0\0";
    const CSM_AND_GET: &[u8] = b"\x40\xe1\x23\x10\0\0\x54\x01abcd\xb4time";

    #[test]
    fn coap_in_its_form_of_datagrams_is_known_inside_records_where_the_port_speaks_for_it() {
        let inside = |port, bytes| choose_inside(&TLS, [40_000, port], bytes).map(|row| row.decode_as);

        assert_eq!([Some("coap"), Some("coap_tcp"), Some("coap_tcp")], [GET, CSM, CSM_AND_GET].map(|bytes| inside(5684, bytes)));
        assert_eq!([None, Some("http")], [inside(8443, GET), inside(443, b"GET / HTTP/1.1\r\n\r\n")]);
    }
}
