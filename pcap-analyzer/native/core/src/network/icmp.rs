//! ICMP errors (RFC 792) and those of ICMPv6 (RFC 4443 §3): which packet they quote, and why it was not delivered.

use super::{Ip, ICMP, ICMPV6, TCP, UDP};
use crate::packet::{Endpoint, Refusal};

/// Bytes before the quoted packet.
const HEADER: usize = 8;

/// The packet that an ICMP error refuses; none for all else, and where the quote ends before the ports.
pub fn refusal(ip: &Ip<'_>) -> Option<Refusal> {
    let &[kind, code] = ip.rest.first()?;
    let why = why(ip.protocol, kind, code)?;
    let quoted = super::open(ip.rest.strip(HEADER)).ok()?;
    let &[s0, s1, d0, d1] = quoted.rest.first()?;
    matches!(quoted.protocol, TCP | UDP).then_some(Refusal {
        source: Endpoint { address: quoted.source, port: u16::from_be_bytes([s0, s1]) },
        destination: Endpoint { address: quoted.destination, port: u16::from_be_bytes([d0, d1]) },
        is_tcp: quoted.protocol == TCP,
        why,
    })
}

/// Why a packet was not delivered, by type and code: RFC 792 and RFC 1812 §5.2.7.1, RFC 4443 §3.1 to §3.3.
const fn why(protocol: u8, kind: u8, code: u8) -> Option<&'static str> {
    Some(match (protocol, kind, code) {
        (ICMP, 3, 0) => "net unreachable",
        (ICMP, 3, 1) => "host unreachable",
        (ICMP, 3, 2) => "protocol unreachable",
        (ICMP, 3, 3) | (ICMPV6, 1, 4) => "port unreachable",
        (ICMP, 3, 4) => "fragmentation needed",
        (ICMP, 3, 9 | 10 | 13) | (ICMPV6, 1, 1) => "administratively prohibited",
        (ICMPV6, 1, 0) => "no route to destination",
        (ICMPV6, 1, 3) => "address unreachable",
        (ICMPV6, 2, _) => "packet too big",
        (ICMP, 3, _) | (ICMPV6, 1, _) => "destination unreachable",
        (ICMP, 11, _) | (ICMPV6, 3, _) => "time exceeded",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Layer;
    use crate::packet::Address;

    /// An IPv4 header (RFC 791 §3.1) of `protocol` from 10.0.0.1 to 10.0.0.2, and what follows it.
    fn packet(protocol: u8, rest: &[u8]) -> Vec<u8> {
        let total = u8::try_from(20 + rest.len()).unwrap();
        [&[0x45, 0, 0, total, 0, 7, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2], rest].concat()
    }

    fn refused(kind: u8, code: u8, quoted: &[u8]) -> Option<Refusal> {
        let error = [&[kind, code, 0, 0, 0, 0, 0, 0], quoted].concat();
        let bytes = packet(ICMP, &error);
        refusal(&crate::network::open(Layer::new(&bytes, u32::try_from(bytes.len()).unwrap())).unwrap())
    }

    #[test]
    fn an_error_names_the_datagram_that_it_quotes() {
        let quoted = packet(UDP, &[0x16, 0x33, 0x9c, 0x40, 0, 20, 0, 0]);
        let endpoint = |last, port| Endpoint { address: Address::V4([10, 0, 0, last]), port };

        let expected = Refusal { source: endpoint(1, 5683), destination: endpoint(2, 40_000), is_tcp: false, why: "port unreachable" };
        assert_eq!(Some(expected), refused(3, 3, &quoted));
    }

    #[test]
    fn echoes_cut_quotes_and_other_protocols_refuse_nothing() {
        let quoted = packet(UDP, &[0x16, 0x33, 0x9c, 0x40, 0, 20, 0, 0]);

        assert_eq!([None; 3], [refused(8, 0, &quoted), refused(3, 3, &quoted[..22]), refused(3, 3, &packet(ICMP, &[0; 8]))]);
    }
}
