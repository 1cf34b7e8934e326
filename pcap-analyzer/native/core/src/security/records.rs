//! What a cipher suite adds to a record, and so how much content a protected record holds.
//!
//! Exact for NULL, stream and AEAD suites up to TLS 1.2. Two cases are ranges, of which the **largest** content is given:
//! - CBC (RFC 5246 §6.2.3.2): the padding takes 1 to 256 bytes and only the keys show how many. It is taken as the one byte that it has at least;
//!   a peer that pads to the next block, as OpenSSL does, sent up to a block less one byte (7 or 15) less, one that pads at random (GnuTLS) more.
//! - TLS 1.3 and DTLS 1.3 (RFC 8446 §5.4): zero bytes may follow the content. None are assumed; JDK's TLS 1.3 sends 16 in every record.
//!
//! Where TLS compression was agreed (RFC 3749), content is what was compressed.

use super::CipherSuite;

/// A protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// SSL 3.0 (RFC 6101).
    Ssl30,
    /// TLS 1.0 (RFC 2246).
    Tls10,
    /// TLS 1.1 (RFC 4346).
    Tls11,
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446) and its drafts.
    Tls13,
    /// DTLS 1.0 (RFC 4347).
    Dtls10,
    /// DTLS 1.2 (RFC 6347).
    Dtls12,
    /// DTLS 1.3 (RFC 9147).
    Dtls13,
}

impl Version {
    /// The version of a number on the wire: ProtocolVersion of a hello, or of supported_versions. Drafts of TLS 1.3 and the experiments of browsers with
    /// it (0x7e, 0xfb) are TLS 1.3, DTLS 1.0 of OpenSSL before 0.9.8f (0x0100) is DTLS 1.0.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<Self> {
        match number {
            0x0300 => Some(Self::Ssl30),
            0x0301 => Some(Self::Tls10),
            0x0302 => Some(Self::Tls11),
            0x0303 => Some(Self::Tls12),
            0x0304 | 0x7e01..=0x7e03 | 0x7f0e..=0x7f1c | 0xfb17 | 0xfb1a => Some(Self::Tls13),
            0xfeff | 0x0100 => Some(Self::Dtls10),
            0xfefd => Some(Self::Dtls12),
            0xfefc => Some(Self::Dtls13),
            _ => None,
        }
    }

    /// Its name: "TLS 1.2".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ssl30 => "SSL 3.0",
            Self::Tls10 => "TLS 1.0",
            Self::Tls11 => "TLS 1.1",
            Self::Tls12 => "TLS 1.2",
            Self::Tls13 => "TLS 1.3",
            Self::Dtls10 => "DTLS 1.0",
            Self::Dtls12 => "DTLS 1.2",
            Self::Dtls13 => "DTLS 1.3",
        }
    }

    /// Whether records hide their content type (RFC 8446 §5.2).
    #[must_use]
    pub const fn is_13(self) -> bool {
        matches!(self, Self::Tls13 | Self::Dtls13)
    }

    /// Whether records of application data with this version's number are of this version: those of TLS 1.3 have TLS 1.2's (RFC 8446 §5.1).
    #[must_use]
    pub const fn is_told_by_records(self) -> bool {
        !matches!(self, Self::Tls12 | Self::Tls13)
    }

    /// Whether CBC records begin with their initialisation vector (RFC 4346 §6.2.3.2).
    const fn has_explicit_vector(self) -> bool {
        !matches!(self, Self::Ssl30 | Self::Tls10)
    }
}

/// What a cipher suite does to a record; sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// A stream cipher, or none: content and MAC.
    Stream {
        /// MAC.
        mac: u8,
    },
    /// A block cipher: vector (from TLS 1.1 on), content, MAC and padding.
    Cbc {
        /// Block, and so vector.
        block: u8,
        /// MAC.
        mac: u8,
    },
    /// Authenticated encryption: explicit nonce, content, tag.
    Aead {
        /// Part of the nonce in the record.
        nonce: u8,
        /// Tag.
        tag: u8,
    },
}

/// What a ServerHello agreed about records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// Protocol version.
    pub version: Version,
    /// Cipher suite; none where its number is not known.
    pub suite: Option<&'static CipherSuite>,
    /// encrypt_then_mac (RFC 7366): of meaning for CBC suites only.
    pub is_encrypt_then_mac: bool,
    /// truncated_hmac (RFC 6066 §7): MACs of 10 bytes in stream and CBC suites.
    pub is_hmac_truncated: bool,
}

impl Agreement {
    /// Bytes of content in a protected record whose fragment has `fragment` bytes: the most it can hold (see the module's head).
    /// None where the suite is not known or the fragment is too small for it.
    #[inline]
    #[must_use]
    pub fn content_bytes(&self, fragment: usize) -> Option<usize> {
        let hidden_type = usize::from(self.version.is_13());
        let overhead = match self.suite?.protection {
            Protection::Aead { nonce, tag } => usize::from(nonce) + usize::from(tag) + hidden_type,
            Protection::Stream { mac } => self.mac(mac),
            Protection::Cbc { block, mac } => return self.cbc_content(fragment, block.into(), self.mac(mac)),
        };
        fragment.checked_sub(overhead)
    }

    fn cbc_content(&self, fragment: usize, block: usize, mac: usize) -> Option<usize> {
        let vector = if self.version.has_explicit_vector() { block } else { 0 };
        let outside = if self.is_encrypt_then_mac { mac } else { 0 };
        let encrypted = fragment.checked_sub(vector + outside)?;
        if encrypted == 0 || !encrypted.is_multiple_of(block) {
            return None;
        }
        encrypted.checked_sub(mac - outside + 1)
    }

    fn mac(&self, mac: u8) -> usize {
        usize::from(if self.is_hmac_truncated { mac.min(10) } else { mac })
    }

    /// Bytes of the Finished message of (D)TLS 1.3 (RFC 8446 §4.4.4).
    #[must_use]
    pub fn finished_bytes(&self) -> Option<usize> {
        Some(4 + self.suite?.hash_bytes())
    }

    /// Whether records are encrypted, not only authenticated.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        let is_open = |suite: &CipherSuite| suite.name.contains("_NULL_") || matches!(suite.number, 0xc0b4 | 0xc0b5);
        !self.suite.is_some_and(is_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(version: Version, suite: u16) -> Agreement {
        Agreement { version, suite: CipherSuite::find(suite), is_encrypt_then_mac: false, is_hmac_truncated: false }
    }

    #[test]
    fn aead_suites_of_tls_1_2_cost_nonce_and_tag() {
        assert_eq!(Some(10), agreed(Version::Tls12, 0xc02b).content_bytes(34));
        assert_eq!(Some(10), agreed(Version::Dtls12, 0xc0a8).content_bytes(26));
        assert_eq!(Some(10), agreed(Version::Tls12, 0xccac).content_bytes(26));
        assert_eq!(None, agreed(Version::Tls12, 0xc02b).content_bytes(23));
    }

    #[test]
    fn tls_1_3_adds_the_content_type() {
        assert_eq!(Some(10), agreed(Version::Tls13, 0x1301).content_bytes(27));
        assert_eq!(Some(10), agreed(Version::Dtls13, 0x1305).content_bytes(19));
        assert_eq!(Some(36), agreed(Version::Tls13, 0x1301).finished_bytes());
        assert_eq!(Some(52), agreed(Version::Tls13, 0x1302).finished_bytes());
    }

    #[test]
    fn cbc_suites_say_the_most_that_fits() {
        let aes = |version| agreed(version, 0x002f);
        assert_eq!(Some(32 - 21), aes(Version::Tls10).content_bytes(32));
        assert_eq!(Some(32 - 21), aes(Version::Tls12).content_bytes(48));
        let outside = Agreement { is_encrypt_then_mac: true, ..aes(Version::Tls12) };
        assert_eq!(Some(31), outside.content_bytes(16 + 32 + 20));
        assert_eq!(None, aes(Version::Tls12).content_bytes(47));
    }

    #[test]
    fn a_truncated_mac_has_ten_bytes() {
        let truncated = Agreement { is_hmac_truncated: true, ..agreed(Version::Tls12, 0x0005) };
        assert_eq!(Some(90), truncated.content_bytes(100));
    }
}
