//! The client's last flight of TLS 1.3 (RFC 8446 §2, §4.4), whose records look like application data: which sizes its messages have.
//!
//! It is a Finished, with a certificate before it Certificate and CertificateVerify too, behind early data EndOfEarlyData. Libraries send each message in
//! a record (OpenSSL, Go), or all of them in one (rustls, Chrome with its settings for the application before the Finished). JDK pads each record with 16
//! bytes.

/// What a record may be of the flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// More may follow.
    Inner,
    /// Its end.
    Last,
}

/// JDK's TLS 1.3 pads each record with so many bytes.
const JDK_PADDING: usize = 16;

/// EndOfEarlyData (RFC 8446 §4.5), and a Certificate without any (§4.4.2: context, list).
const SHORT: [usize; 2] = [4, 4 + 1 + 3];

/// CertificateVerify without its signature: header, algorithm, length (RFC 8446 §4.4.3).
const VERIFY: usize = 4 + 2 + 2;

/// Signatures of elliptic curves: from Ed25519 to P-521 in DER.
const CURVES: std::ops::RangeInclusive<usize> = 64..=139;

/// Signatures of RSA with keys of 1,024 to 4,096 bits have one of these factors.
const RSA: (usize, std::ops::RangeInclusive<usize>) = (128, 1..=4);

/// What the client's first record behind the ServerHello may be, by its content's size and that of a Finished: all that is longer may be the whole
/// flight.
pub fn first(content: usize, finished: usize) -> Option<Part> {
    let is_short = SHORT.iter().any(|&bytes| is_padded(content, bytes));
    last(content, finished).or((is_short || content > finished).then_some(Part::Inner))
}

/// What a later one may be.
pub fn later(content: usize, finished: usize) -> Option<Part> {
    let is_signature = |bytes: usize| CURVES.contains(&bytes) || (bytes.is_multiple_of(RSA.0) && RSA.1.contains(&(bytes / RSA.0)));
    let is_verify = [VERIFY, VERIFY + JDK_PADDING].iter().any(|&around| content.checked_sub(around).is_some_and(is_signature));
    last(content, finished).or(is_verify.then_some(Part::Inner))
}

fn last(content: usize, finished: usize) -> Option<Part> {
    is_padded(content, finished).then_some(Part::Last)
}

fn is_padded(content: usize, bytes: usize) -> bool {
    content == bytes || content == bytes + JDK_PADDING
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of OpenSSL 3.0 with an RSA key of 2,048 bits, of Go 1.26 without a certificate, of Chrome, and of MQTT CONNECT packets behind them.
    #[test]
    fn sizes_tell_the_flight_from_data() {
        assert_eq!([Some(Part::Inner), Some(Part::Last)], [first(816, 52), first(52, 52)]);
        assert_eq!([Some(Part::Inner), Some(Part::Last), None], [later(264, 52), later(52, 52), later(26, 52)]);
        assert_eq!([Some(Part::Inner), None, Some(Part::Inner)], [first(8, 36), first(26, 36), first(46, 36)]);
        assert_eq!([Some(Part::Last), Some(Part::Inner)], [first(36 + 16, 36), later(80, 36)]);
    }
}
