//! The TLS cipher suites of IANA's registry, and a few of drafts that captures hold, with what each adds to a record.
//!
//! Numbers and names: IANA "TLS Cipher Suites" (RFC 8447 §8). Sizes: RFC 5246 §6.2.3 (NULL, stream, CBC), RFC 5288 §3 (GCM), RFC 6655 §3 and
//! §4 (CCM, CCM_8), RFC 7905 §2 (ChaCha20-Poly1305), RFC 8446 §5.2, RFC 8998 §2 (SM4), RFC 9150 §4 (integrity only), RFC 9189 §4 and RFC 9367 §4 (GOST).
//! Of drafts: 0x0060 to 0x0066 (export1024), 0x1306 and 0x1307 (AEGIS), 0xc0ff (EC J-PAKE, used by Thread), 0xcc13 to 0xcc15 (first ChaCha20-Poly1305).

use super::records::Protection;

/// A cipher suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CipherSuite {
    /// Its number.
    pub number: u16,
    /// IANA's name.
    pub name: &'static str,
    /// Key exchange and authentication, as in the name; "any" in TLS 1.3 where both are agreed apart.
    pub key_exchange: &'static str,
    /// What it does to a record.
    pub protection: Protection,
}

impl CipherSuite {
    /// The suite of this number, where it is known.
    #[must_use]
    pub fn find(number: u16) -> Option<&'static Self> {
        let at = CIPHER_SUITES.binary_search_by_key(&number, |suite| suite.number).ok()?;
        CIPHER_SUITES.get(at)
    }

    /// Bytes of the hash that TLS 1.3's Finished holds (RFC 8446 §4.4.4).
    #[must_use]
    pub fn hash_bytes(&self) -> usize {
        const HASHES: &[(&str, usize)] = &[("SHA512", 64), ("SHA384", 48)];
        HASHES.iter().find(|(hash, _)| self.name.ends_with(hash)).map_or(32, |(_, bytes)| *bytes)
    }
}

const fn stream(mac: u8) -> Protection {
    Protection::Stream { mac }
}

const fn cbc(block: u8, mac: u8) -> Protection {
    Protection::Cbc { block, mac }
}

const fn aead(nonce: u8, tag: u8) -> Protection {
    Protection::Aead { nonce, tag }
}

/// Numbers that signal something in a ClientHello and are never chosen.
const SIGNAL: Protection = stream(0);

macro_rules! suites {
    ($($number:literal, $name:literal, $key_exchange:literal, $protection:expr;)*) => {
        &[$(CipherSuite { number: $number, name: $name, key_exchange: $key_exchange, protection: $protection }),*]
    };
}

/// All cipher suites by number.
#[rustfmt::skip]
pub const CIPHER_SUITES: &[CipherSuite] = suites! {
    0x0000, "TLS_NULL_WITH_NULL_NULL", "NULL", stream(0);
    0x0001, "TLS_RSA_WITH_NULL_MD5", "RSA", stream(16);
    0x0002, "TLS_RSA_WITH_NULL_SHA", "RSA", stream(20);
    0x0003, "TLS_RSA_EXPORT_WITH_RC4_40_MD5", "RSA_EXPORT", stream(16);
    0x0004, "TLS_RSA_WITH_RC4_128_MD5", "RSA", stream(16);
    0x0005, "TLS_RSA_WITH_RC4_128_SHA", "RSA", stream(20);
    0x0006, "TLS_RSA_EXPORT_WITH_RC2_CBC_40_MD5", "RSA_EXPORT", cbc(8, 16);
    0x0007, "TLS_RSA_WITH_IDEA_CBC_SHA", "RSA", cbc(8, 20);
    0x0008, "TLS_RSA_EXPORT_WITH_DES40_CBC_SHA", "RSA_EXPORT", cbc(8, 20);
    0x0009, "TLS_RSA_WITH_DES_CBC_SHA", "RSA", cbc(8, 20);
    0x000a, "TLS_RSA_WITH_3DES_EDE_CBC_SHA", "RSA", cbc(8, 20);
    0x000b, "TLS_DH_DSS_EXPORT_WITH_DES40_CBC_SHA", "DH_DSS_EXPORT", cbc(8, 20);
    0x000c, "TLS_DH_DSS_WITH_DES_CBC_SHA", "DH_DSS", cbc(8, 20);
    0x000d, "TLS_DH_DSS_WITH_3DES_EDE_CBC_SHA", "DH_DSS", cbc(8, 20);
    0x000e, "TLS_DH_RSA_EXPORT_WITH_DES40_CBC_SHA", "DH_RSA_EXPORT", cbc(8, 20);
    0x000f, "TLS_DH_RSA_WITH_DES_CBC_SHA", "DH_RSA", cbc(8, 20);
    0x0010, "TLS_DH_RSA_WITH_3DES_EDE_CBC_SHA", "DH_RSA", cbc(8, 20);
    0x0011, "TLS_DHE_DSS_EXPORT_WITH_DES40_CBC_SHA", "DHE_DSS_EXPORT", cbc(8, 20);
    0x0012, "TLS_DHE_DSS_WITH_DES_CBC_SHA", "DHE_DSS", cbc(8, 20);
    0x0013, "TLS_DHE_DSS_WITH_3DES_EDE_CBC_SHA", "DHE_DSS", cbc(8, 20);
    0x0014, "TLS_DHE_RSA_EXPORT_WITH_DES40_CBC_SHA", "DHE_RSA_EXPORT", cbc(8, 20);
    0x0015, "TLS_DHE_RSA_WITH_DES_CBC_SHA", "DHE_RSA", cbc(8, 20);
    0x0016, "TLS_DHE_RSA_WITH_3DES_EDE_CBC_SHA", "DHE_RSA", cbc(8, 20);
    0x0017, "TLS_DH_anon_EXPORT_WITH_RC4_40_MD5", "DH_anon_EXPORT", stream(16);
    0x0018, "TLS_DH_anon_WITH_RC4_128_MD5", "DH_anon", stream(16);
    0x0019, "TLS_DH_anon_EXPORT_WITH_DES40_CBC_SHA", "DH_anon_EXPORT", cbc(8, 20);
    0x001a, "TLS_DH_anon_WITH_DES_CBC_SHA", "DH_anon", cbc(8, 20);
    0x001b, "TLS_DH_anon_WITH_3DES_EDE_CBC_SHA", "DH_anon", cbc(8, 20);
    0x001e, "TLS_KRB5_WITH_DES_CBC_SHA", "KRB5", cbc(8, 20);
    0x001f, "TLS_KRB5_WITH_3DES_EDE_CBC_SHA", "KRB5", cbc(8, 20);
    0x0020, "TLS_KRB5_WITH_RC4_128_SHA", "KRB5", stream(20);
    0x0021, "TLS_KRB5_WITH_IDEA_CBC_SHA", "KRB5", cbc(8, 20);
    0x0022, "TLS_KRB5_WITH_DES_CBC_MD5", "KRB5", cbc(8, 16);
    0x0023, "TLS_KRB5_WITH_3DES_EDE_CBC_MD5", "KRB5", cbc(8, 16);
    0x0024, "TLS_KRB5_WITH_RC4_128_MD5", "KRB5", stream(16);
    0x0025, "TLS_KRB5_WITH_IDEA_CBC_MD5", "KRB5", cbc(8, 16);
    0x0026, "TLS_KRB5_EXPORT_WITH_DES_CBC_40_SHA", "KRB5_EXPORT", cbc(8, 20);
    0x0027, "TLS_KRB5_EXPORT_WITH_RC2_CBC_40_SHA", "KRB5_EXPORT", cbc(8, 20);
    0x0028, "TLS_KRB5_EXPORT_WITH_RC4_40_SHA", "KRB5_EXPORT", stream(20);
    0x0029, "TLS_KRB5_EXPORT_WITH_DES_CBC_40_MD5", "KRB5_EXPORT", cbc(8, 16);
    0x002a, "TLS_KRB5_EXPORT_WITH_RC2_CBC_40_MD5", "KRB5_EXPORT", cbc(8, 16);
    0x002b, "TLS_KRB5_EXPORT_WITH_RC4_40_MD5", "KRB5_EXPORT", stream(16);
    0x002c, "TLS_PSK_WITH_NULL_SHA", "PSK", stream(20);
    0x002d, "TLS_DHE_PSK_WITH_NULL_SHA", "DHE_PSK", stream(20);
    0x002e, "TLS_RSA_PSK_WITH_NULL_SHA", "RSA_PSK", stream(20);
    0x002f, "TLS_RSA_WITH_AES_128_CBC_SHA", "RSA", cbc(16, 20);
    0x0030, "TLS_DH_DSS_WITH_AES_128_CBC_SHA", "DH_DSS", cbc(16, 20);
    0x0031, "TLS_DH_RSA_WITH_AES_128_CBC_SHA", "DH_RSA", cbc(16, 20);
    0x0032, "TLS_DHE_DSS_WITH_AES_128_CBC_SHA", "DHE_DSS", cbc(16, 20);
    0x0033, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA", "DHE_RSA", cbc(16, 20);
    0x0034, "TLS_DH_anon_WITH_AES_128_CBC_SHA", "DH_anon", cbc(16, 20);
    0x0035, "TLS_RSA_WITH_AES_256_CBC_SHA", "RSA", cbc(16, 20);
    0x0036, "TLS_DH_DSS_WITH_AES_256_CBC_SHA", "DH_DSS", cbc(16, 20);
    0x0037, "TLS_DH_RSA_WITH_AES_256_CBC_SHA", "DH_RSA", cbc(16, 20);
    0x0038, "TLS_DHE_DSS_WITH_AES_256_CBC_SHA", "DHE_DSS", cbc(16, 20);
    0x0039, "TLS_DHE_RSA_WITH_AES_256_CBC_SHA", "DHE_RSA", cbc(16, 20);
    0x003a, "TLS_DH_anon_WITH_AES_256_CBC_SHA", "DH_anon", cbc(16, 20);
    0x003b, "TLS_RSA_WITH_NULL_SHA256", "RSA", stream(32);
    0x003c, "TLS_RSA_WITH_AES_128_CBC_SHA256", "RSA", cbc(16, 32);
    0x003d, "TLS_RSA_WITH_AES_256_CBC_SHA256", "RSA", cbc(16, 32);
    0x003e, "TLS_DH_DSS_WITH_AES_128_CBC_SHA256", "DH_DSS", cbc(16, 32);
    0x003f, "TLS_DH_RSA_WITH_AES_128_CBC_SHA256", "DH_RSA", cbc(16, 32);
    0x0040, "TLS_DHE_DSS_WITH_AES_128_CBC_SHA256", "DHE_DSS", cbc(16, 32);
    0x0041, "TLS_RSA_WITH_CAMELLIA_128_CBC_SHA", "RSA", cbc(16, 20);
    0x0042, "TLS_DH_DSS_WITH_CAMELLIA_128_CBC_SHA", "DH_DSS", cbc(16, 20);
    0x0043, "TLS_DH_RSA_WITH_CAMELLIA_128_CBC_SHA", "DH_RSA", cbc(16, 20);
    0x0044, "TLS_DHE_DSS_WITH_CAMELLIA_128_CBC_SHA", "DHE_DSS", cbc(16, 20);
    0x0045, "TLS_DHE_RSA_WITH_CAMELLIA_128_CBC_SHA", "DHE_RSA", cbc(16, 20);
    0x0046, "TLS_DH_anon_WITH_CAMELLIA_128_CBC_SHA", "DH_anon", cbc(16, 20);
    0x0060, "TLS_RSA_EXPORT1024_WITH_RC4_56_MD5", "RSA_EXPORT1024", stream(16);
    0x0061, "TLS_RSA_EXPORT1024_WITH_RC2_CBC_56_MD5", "RSA_EXPORT1024", cbc(8, 16);
    0x0062, "TLS_RSA_EXPORT1024_WITH_DES_CBC_SHA", "RSA_EXPORT1024", cbc(8, 20);
    0x0063, "TLS_DHE_DSS_EXPORT1024_WITH_DES_CBC_SHA", "DHE_DSS_EXPORT1024", cbc(8, 20);
    0x0064, "TLS_RSA_EXPORT1024_WITH_RC4_56_SHA", "RSA_EXPORT1024", stream(20);
    0x0065, "TLS_DHE_DSS_EXPORT1024_WITH_RC4_56_SHA", "DHE_DSS_EXPORT1024", stream(20);
    0x0066, "TLS_DHE_DSS_WITH_RC4_128_SHA", "DHE_DSS", stream(20);
    0x0067, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256", "DHE_RSA", cbc(16, 32);
    0x0068, "TLS_DH_DSS_WITH_AES_256_CBC_SHA256", "DH_DSS", cbc(16, 32);
    0x0069, "TLS_DH_RSA_WITH_AES_256_CBC_SHA256", "DH_RSA", cbc(16, 32);
    0x006a, "TLS_DHE_DSS_WITH_AES_256_CBC_SHA256", "DHE_DSS", cbc(16, 32);
    0x006b, "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE_RSA", cbc(16, 32);
    0x006c, "TLS_DH_anon_WITH_AES_128_CBC_SHA256", "DH_anon", cbc(16, 32);
    0x006d, "TLS_DH_anon_WITH_AES_256_CBC_SHA256", "DH_anon", cbc(16, 32);
    0x0084, "TLS_RSA_WITH_CAMELLIA_256_CBC_SHA", "RSA", cbc(16, 20);
    0x0085, "TLS_DH_DSS_WITH_CAMELLIA_256_CBC_SHA", "DH_DSS", cbc(16, 20);
    0x0086, "TLS_DH_RSA_WITH_CAMELLIA_256_CBC_SHA", "DH_RSA", cbc(16, 20);
    0x0087, "TLS_DHE_DSS_WITH_CAMELLIA_256_CBC_SHA", "DHE_DSS", cbc(16, 20);
    0x0088, "TLS_DHE_RSA_WITH_CAMELLIA_256_CBC_SHA", "DHE_RSA", cbc(16, 20);
    0x0089, "TLS_DH_anon_WITH_CAMELLIA_256_CBC_SHA", "DH_anon", cbc(16, 20);
    0x008a, "TLS_PSK_WITH_RC4_128_SHA", "PSK", stream(20);
    0x008b, "TLS_PSK_WITH_3DES_EDE_CBC_SHA", "PSK", cbc(8, 20);
    0x008c, "TLS_PSK_WITH_AES_128_CBC_SHA", "PSK", cbc(16, 20);
    0x008d, "TLS_PSK_WITH_AES_256_CBC_SHA", "PSK", cbc(16, 20);
    0x008e, "TLS_DHE_PSK_WITH_RC4_128_SHA", "DHE_PSK", stream(20);
    0x008f, "TLS_DHE_PSK_WITH_3DES_EDE_CBC_SHA", "DHE_PSK", cbc(8, 20);
    0x0090, "TLS_DHE_PSK_WITH_AES_128_CBC_SHA", "DHE_PSK", cbc(16, 20);
    0x0091, "TLS_DHE_PSK_WITH_AES_256_CBC_SHA", "DHE_PSK", cbc(16, 20);
    0x0092, "TLS_RSA_PSK_WITH_RC4_128_SHA", "RSA_PSK", stream(20);
    0x0093, "TLS_RSA_PSK_WITH_3DES_EDE_CBC_SHA", "RSA_PSK", cbc(8, 20);
    0x0094, "TLS_RSA_PSK_WITH_AES_128_CBC_SHA", "RSA_PSK", cbc(16, 20);
    0x0095, "TLS_RSA_PSK_WITH_AES_256_CBC_SHA", "RSA_PSK", cbc(16, 20);
    0x0096, "TLS_RSA_WITH_SEED_CBC_SHA", "RSA", cbc(16, 20);
    0x0097, "TLS_DH_DSS_WITH_SEED_CBC_SHA", "DH_DSS", cbc(16, 20);
    0x0098, "TLS_DH_RSA_WITH_SEED_CBC_SHA", "DH_RSA", cbc(16, 20);
    0x0099, "TLS_DHE_DSS_WITH_SEED_CBC_SHA", "DHE_DSS", cbc(16, 20);
    0x009a, "TLS_DHE_RSA_WITH_SEED_CBC_SHA", "DHE_RSA", cbc(16, 20);
    0x009b, "TLS_DH_anon_WITH_SEED_CBC_SHA", "DH_anon", cbc(16, 20);
    0x009c, "TLS_RSA_WITH_AES_128_GCM_SHA256", "RSA", aead(8, 16);
    0x009d, "TLS_RSA_WITH_AES_256_GCM_SHA384", "RSA", aead(8, 16);
    0x009e, "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "DHE_RSA", aead(8, 16);
    0x009f, "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE_RSA", aead(8, 16);
    0x00a0, "TLS_DH_RSA_WITH_AES_128_GCM_SHA256", "DH_RSA", aead(8, 16);
    0x00a1, "TLS_DH_RSA_WITH_AES_256_GCM_SHA384", "DH_RSA", aead(8, 16);
    0x00a2, "TLS_DHE_DSS_WITH_AES_128_GCM_SHA256", "DHE_DSS", aead(8, 16);
    0x00a3, "TLS_DHE_DSS_WITH_AES_256_GCM_SHA384", "DHE_DSS", aead(8, 16);
    0x00a4, "TLS_DH_DSS_WITH_AES_128_GCM_SHA256", "DH_DSS", aead(8, 16);
    0x00a5, "TLS_DH_DSS_WITH_AES_256_GCM_SHA384", "DH_DSS", aead(8, 16);
    0x00a6, "TLS_DH_anon_WITH_AES_128_GCM_SHA256", "DH_anon", aead(8, 16);
    0x00a7, "TLS_DH_anon_WITH_AES_256_GCM_SHA384", "DH_anon", aead(8, 16);
    0x00a8, "TLS_PSK_WITH_AES_128_GCM_SHA256", "PSK", aead(8, 16);
    0x00a9, "TLS_PSK_WITH_AES_256_GCM_SHA384", "PSK", aead(8, 16);
    0x00aa, "TLS_DHE_PSK_WITH_AES_128_GCM_SHA256", "DHE_PSK", aead(8, 16);
    0x00ab, "TLS_DHE_PSK_WITH_AES_256_GCM_SHA384", "DHE_PSK", aead(8, 16);
    0x00ac, "TLS_RSA_PSK_WITH_AES_128_GCM_SHA256", "RSA_PSK", aead(8, 16);
    0x00ad, "TLS_RSA_PSK_WITH_AES_256_GCM_SHA384", "RSA_PSK", aead(8, 16);
    0x00ae, "TLS_PSK_WITH_AES_128_CBC_SHA256", "PSK", cbc(16, 32);
    0x00af, "TLS_PSK_WITH_AES_256_CBC_SHA384", "PSK", cbc(16, 48);
    0x00b0, "TLS_PSK_WITH_NULL_SHA256", "PSK", stream(32);
    0x00b1, "TLS_PSK_WITH_NULL_SHA384", "PSK", stream(48);
    0x00b2, "TLS_DHE_PSK_WITH_AES_128_CBC_SHA256", "DHE_PSK", cbc(16, 32);
    0x00b3, "TLS_DHE_PSK_WITH_AES_256_CBC_SHA384", "DHE_PSK", cbc(16, 48);
    0x00b4, "TLS_DHE_PSK_WITH_NULL_SHA256", "DHE_PSK", stream(32);
    0x00b5, "TLS_DHE_PSK_WITH_NULL_SHA384", "DHE_PSK", stream(48);
    0x00b6, "TLS_RSA_PSK_WITH_AES_128_CBC_SHA256", "RSA_PSK", cbc(16, 32);
    0x00b7, "TLS_RSA_PSK_WITH_AES_256_CBC_SHA384", "RSA_PSK", cbc(16, 48);
    0x00b8, "TLS_RSA_PSK_WITH_NULL_SHA256", "RSA_PSK", stream(32);
    0x00b9, "TLS_RSA_PSK_WITH_NULL_SHA384", "RSA_PSK", stream(48);
    0x00ba, "TLS_RSA_WITH_CAMELLIA_128_CBC_SHA256", "RSA", cbc(16, 32);
    0x00bb, "TLS_DH_DSS_WITH_CAMELLIA_128_CBC_SHA256", "DH_DSS", cbc(16, 32);
    0x00bc, "TLS_DH_RSA_WITH_CAMELLIA_128_CBC_SHA256", "DH_RSA", cbc(16, 32);
    0x00bd, "TLS_DHE_DSS_WITH_CAMELLIA_128_CBC_SHA256", "DHE_DSS", cbc(16, 32);
    0x00be, "TLS_DHE_RSA_WITH_CAMELLIA_128_CBC_SHA256", "DHE_RSA", cbc(16, 32);
    0x00bf, "TLS_DH_anon_WITH_CAMELLIA_128_CBC_SHA256", "DH_anon", cbc(16, 32);
    0x00c0, "TLS_RSA_WITH_CAMELLIA_256_CBC_SHA256", "RSA", cbc(16, 32);
    0x00c1, "TLS_DH_DSS_WITH_CAMELLIA_256_CBC_SHA256", "DH_DSS", cbc(16, 32);
    0x00c2, "TLS_DH_RSA_WITH_CAMELLIA_256_CBC_SHA256", "DH_RSA", cbc(16, 32);
    0x00c3, "TLS_DHE_DSS_WITH_CAMELLIA_256_CBC_SHA256", "DHE_DSS", cbc(16, 32);
    0x00c4, "TLS_DHE_RSA_WITH_CAMELLIA_256_CBC_SHA256", "DHE_RSA", cbc(16, 32);
    0x00c5, "TLS_DH_anon_WITH_CAMELLIA_256_CBC_SHA256", "DH_anon", cbc(16, 32);
    0x00c6, "TLS_SM4_GCM_SM3", "any", aead(0, 16);
    0x00c7, "TLS_SM4_CCM_SM3", "any", aead(0, 16);
    0x00ff, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "none", SIGNAL;
    0x1301, "TLS_AES_128_GCM_SHA256", "any", aead(0, 16);
    0x1302, "TLS_AES_256_GCM_SHA384", "any", aead(0, 16);
    0x1303, "TLS_CHACHA20_POLY1305_SHA256", "any", aead(0, 16);
    0x1304, "TLS_AES_128_CCM_SHA256", "any", aead(0, 16);
    0x1305, "TLS_AES_128_CCM_8_SHA256", "any", aead(0, 8);
    0x1306, "TLS_AEGIS_256_SHA512", "any", aead(0, 16);
    0x1307, "TLS_AEGIS_128L_SHA256", "any", aead(0, 16);
    0x5600, "TLS_FALLBACK_SCSV", "none", SIGNAL;
    0xc001, "TLS_ECDH_ECDSA_WITH_NULL_SHA", "ECDH_ECDSA", stream(20);
    0xc002, "TLS_ECDH_ECDSA_WITH_RC4_128_SHA", "ECDH_ECDSA", stream(20);
    0xc003, "TLS_ECDH_ECDSA_WITH_3DES_EDE_CBC_SHA", "ECDH_ECDSA", cbc(8, 20);
    0xc004, "TLS_ECDH_ECDSA_WITH_AES_128_CBC_SHA", "ECDH_ECDSA", cbc(16, 20);
    0xc005, "TLS_ECDH_ECDSA_WITH_AES_256_CBC_SHA", "ECDH_ECDSA", cbc(16, 20);
    0xc006, "TLS_ECDHE_ECDSA_WITH_NULL_SHA", "ECDHE_ECDSA", stream(20);
    0xc007, "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", "ECDHE_ECDSA", stream(20);
    0xc008, "TLS_ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA", "ECDHE_ECDSA", cbc(8, 20);
    0xc009, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE_ECDSA", cbc(16, 20);
    0xc00a, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE_ECDSA", cbc(16, 20);
    0xc00b, "TLS_ECDH_RSA_WITH_NULL_SHA", "ECDH_RSA", stream(20);
    0xc00c, "TLS_ECDH_RSA_WITH_RC4_128_SHA", "ECDH_RSA", stream(20);
    0xc00d, "TLS_ECDH_RSA_WITH_3DES_EDE_CBC_SHA", "ECDH_RSA", cbc(8, 20);
    0xc00e, "TLS_ECDH_RSA_WITH_AES_128_CBC_SHA", "ECDH_RSA", cbc(16, 20);
    0xc00f, "TLS_ECDH_RSA_WITH_AES_256_CBC_SHA", "ECDH_RSA", cbc(16, 20);
    0xc010, "TLS_ECDHE_RSA_WITH_NULL_SHA", "ECDHE_RSA", stream(20);
    0xc011, "TLS_ECDHE_RSA_WITH_RC4_128_SHA", "ECDHE_RSA", stream(20);
    0xc012, "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", "ECDHE_RSA", cbc(8, 20);
    0xc013, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE_RSA", cbc(16, 20);
    0xc014, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE_RSA", cbc(16, 20);
    0xc015, "TLS_ECDH_anon_WITH_NULL_SHA", "ECDH_anon", stream(20);
    0xc016, "TLS_ECDH_anon_WITH_RC4_128_SHA", "ECDH_anon", stream(20);
    0xc017, "TLS_ECDH_anon_WITH_3DES_EDE_CBC_SHA", "ECDH_anon", cbc(8, 20);
    0xc018, "TLS_ECDH_anon_WITH_AES_128_CBC_SHA", "ECDH_anon", cbc(16, 20);
    0xc019, "TLS_ECDH_anon_WITH_AES_256_CBC_SHA", "ECDH_anon", cbc(16, 20);
    0xc01a, "TLS_SRP_SHA_WITH_3DES_EDE_CBC_SHA", "SRP_SHA", cbc(8, 20);
    0xc01b, "TLS_SRP_SHA_RSA_WITH_3DES_EDE_CBC_SHA", "SRP_SHA_RSA", cbc(8, 20);
    0xc01c, "TLS_SRP_SHA_DSS_WITH_3DES_EDE_CBC_SHA", "SRP_SHA_DSS", cbc(8, 20);
    0xc01d, "TLS_SRP_SHA_WITH_AES_128_CBC_SHA", "SRP_SHA", cbc(16, 20);
    0xc01e, "TLS_SRP_SHA_RSA_WITH_AES_128_CBC_SHA", "SRP_SHA_RSA", cbc(16, 20);
    0xc01f, "TLS_SRP_SHA_DSS_WITH_AES_128_CBC_SHA", "SRP_SHA_DSS", cbc(16, 20);
    0xc020, "TLS_SRP_SHA_WITH_AES_256_CBC_SHA", "SRP_SHA", cbc(16, 20);
    0xc021, "TLS_SRP_SHA_RSA_WITH_AES_256_CBC_SHA", "SRP_SHA_RSA", cbc(16, 20);
    0xc022, "TLS_SRP_SHA_DSS_WITH_AES_256_CBC_SHA", "SRP_SHA_DSS", cbc(16, 20);
    0xc023, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE_ECDSA", cbc(16, 32);
    0xc024, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE_ECDSA", cbc(16, 48);
    0xc025, "TLS_ECDH_ECDSA_WITH_AES_128_CBC_SHA256", "ECDH_ECDSA", cbc(16, 32);
    0xc026, "TLS_ECDH_ECDSA_WITH_AES_256_CBC_SHA384", "ECDH_ECDSA", cbc(16, 48);
    0xc027, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE_RSA", cbc(16, 32);
    0xc028, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE_RSA", cbc(16, 48);
    0xc029, "TLS_ECDH_RSA_WITH_AES_128_CBC_SHA256", "ECDH_RSA", cbc(16, 32);
    0xc02a, "TLS_ECDH_RSA_WITH_AES_256_CBC_SHA384", "ECDH_RSA", cbc(16, 48);
    0xc02b, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE_ECDSA", aead(8, 16);
    0xc02c, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE_ECDSA", aead(8, 16);
    0xc02d, "TLS_ECDH_ECDSA_WITH_AES_128_GCM_SHA256", "ECDH_ECDSA", aead(8, 16);
    0xc02e, "TLS_ECDH_ECDSA_WITH_AES_256_GCM_SHA384", "ECDH_ECDSA", aead(8, 16);
    0xc02f, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE_RSA", aead(8, 16);
    0xc030, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE_RSA", aead(8, 16);
    0xc031, "TLS_ECDH_RSA_WITH_AES_128_GCM_SHA256", "ECDH_RSA", aead(8, 16);
    0xc032, "TLS_ECDH_RSA_WITH_AES_256_GCM_SHA384", "ECDH_RSA", aead(8, 16);
    0xc033, "TLS_ECDHE_PSK_WITH_RC4_128_SHA", "ECDHE_PSK", stream(20);
    0xc034, "TLS_ECDHE_PSK_WITH_3DES_EDE_CBC_SHA", "ECDHE_PSK", cbc(8, 20);
    0xc035, "TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA", "ECDHE_PSK", cbc(16, 20);
    0xc036, "TLS_ECDHE_PSK_WITH_AES_256_CBC_SHA", "ECDHE_PSK", cbc(16, 20);
    0xc037, "TLS_ECDHE_PSK_WITH_AES_128_CBC_SHA256", "ECDHE_PSK", cbc(16, 32);
    0xc038, "TLS_ECDHE_PSK_WITH_AES_256_CBC_SHA384", "ECDHE_PSK", cbc(16, 48);
    0xc039, "TLS_ECDHE_PSK_WITH_NULL_SHA", "ECDHE_PSK", stream(20);
    0xc03a, "TLS_ECDHE_PSK_WITH_NULL_SHA256", "ECDHE_PSK", stream(32);
    0xc03b, "TLS_ECDHE_PSK_WITH_NULL_SHA384", "ECDHE_PSK", stream(48);
    0xc03c, "TLS_RSA_WITH_ARIA_128_CBC_SHA256", "RSA", cbc(16, 32);
    0xc03d, "TLS_RSA_WITH_ARIA_256_CBC_SHA384", "RSA", cbc(16, 48);
    0xc03e, "TLS_DH_DSS_WITH_ARIA_128_CBC_SHA256", "DH_DSS", cbc(16, 32);
    0xc03f, "TLS_DH_DSS_WITH_ARIA_256_CBC_SHA384", "DH_DSS", cbc(16, 48);
    0xc040, "TLS_DH_RSA_WITH_ARIA_128_CBC_SHA256", "DH_RSA", cbc(16, 32);
    0xc041, "TLS_DH_RSA_WITH_ARIA_256_CBC_SHA384", "DH_RSA", cbc(16, 48);
    0xc042, "TLS_DHE_DSS_WITH_ARIA_128_CBC_SHA256", "DHE_DSS", cbc(16, 32);
    0xc043, "TLS_DHE_DSS_WITH_ARIA_256_CBC_SHA384", "DHE_DSS", cbc(16, 48);
    0xc044, "TLS_DHE_RSA_WITH_ARIA_128_CBC_SHA256", "DHE_RSA", cbc(16, 32);
    0xc045, "TLS_DHE_RSA_WITH_ARIA_256_CBC_SHA384", "DHE_RSA", cbc(16, 48);
    0xc046, "TLS_DH_anon_WITH_ARIA_128_CBC_SHA256", "DH_anon", cbc(16, 32);
    0xc047, "TLS_DH_anon_WITH_ARIA_256_CBC_SHA384", "DH_anon", cbc(16, 48);
    0xc048, "TLS_ECDHE_ECDSA_WITH_ARIA_128_CBC_SHA256", "ECDHE_ECDSA", cbc(16, 32);
    0xc049, "TLS_ECDHE_ECDSA_WITH_ARIA_256_CBC_SHA384", "ECDHE_ECDSA", cbc(16, 48);
    0xc04a, "TLS_ECDH_ECDSA_WITH_ARIA_128_CBC_SHA256", "ECDH_ECDSA", cbc(16, 32);
    0xc04b, "TLS_ECDH_ECDSA_WITH_ARIA_256_CBC_SHA384", "ECDH_ECDSA", cbc(16, 48);
    0xc04c, "TLS_ECDHE_RSA_WITH_ARIA_128_CBC_SHA256", "ECDHE_RSA", cbc(16, 32);
    0xc04d, "TLS_ECDHE_RSA_WITH_ARIA_256_CBC_SHA384", "ECDHE_RSA", cbc(16, 48);
    0xc04e, "TLS_ECDH_RSA_WITH_ARIA_128_CBC_SHA256", "ECDH_RSA", cbc(16, 32);
    0xc04f, "TLS_ECDH_RSA_WITH_ARIA_256_CBC_SHA384", "ECDH_RSA", cbc(16, 48);
    0xc050, "TLS_RSA_WITH_ARIA_128_GCM_SHA256", "RSA", aead(8, 16);
    0xc051, "TLS_RSA_WITH_ARIA_256_GCM_SHA384", "RSA", aead(8, 16);
    0xc052, "TLS_DHE_RSA_WITH_ARIA_128_GCM_SHA256", "DHE_RSA", aead(8, 16);
    0xc053, "TLS_DHE_RSA_WITH_ARIA_256_GCM_SHA384", "DHE_RSA", aead(8, 16);
    0xc054, "TLS_DH_RSA_WITH_ARIA_128_GCM_SHA256", "DH_RSA", aead(8, 16);
    0xc055, "TLS_DH_RSA_WITH_ARIA_256_GCM_SHA384", "DH_RSA", aead(8, 16);
    0xc056, "TLS_DHE_DSS_WITH_ARIA_128_GCM_SHA256", "DHE_DSS", aead(8, 16);
    0xc057, "TLS_DHE_DSS_WITH_ARIA_256_GCM_SHA384", "DHE_DSS", aead(8, 16);
    0xc058, "TLS_DH_DSS_WITH_ARIA_128_GCM_SHA256", "DH_DSS", aead(8, 16);
    0xc059, "TLS_DH_DSS_WITH_ARIA_256_GCM_SHA384", "DH_DSS", aead(8, 16);
    0xc05a, "TLS_DH_anon_WITH_ARIA_128_GCM_SHA256", "DH_anon", aead(8, 16);
    0xc05b, "TLS_DH_anon_WITH_ARIA_256_GCM_SHA384", "DH_anon", aead(8, 16);
    0xc05c, "TLS_ECDHE_ECDSA_WITH_ARIA_128_GCM_SHA256", "ECDHE_ECDSA", aead(8, 16);
    0xc05d, "TLS_ECDHE_ECDSA_WITH_ARIA_256_GCM_SHA384", "ECDHE_ECDSA", aead(8, 16);
    0xc05e, "TLS_ECDH_ECDSA_WITH_ARIA_128_GCM_SHA256", "ECDH_ECDSA", aead(8, 16);
    0xc05f, "TLS_ECDH_ECDSA_WITH_ARIA_256_GCM_SHA384", "ECDH_ECDSA", aead(8, 16);
    0xc060, "TLS_ECDHE_RSA_WITH_ARIA_128_GCM_SHA256", "ECDHE_RSA", aead(8, 16);
    0xc061, "TLS_ECDHE_RSA_WITH_ARIA_256_GCM_SHA384", "ECDHE_RSA", aead(8, 16);
    0xc062, "TLS_ECDH_RSA_WITH_ARIA_128_GCM_SHA256", "ECDH_RSA", aead(8, 16);
    0xc063, "TLS_ECDH_RSA_WITH_ARIA_256_GCM_SHA384", "ECDH_RSA", aead(8, 16);
    0xc064, "TLS_PSK_WITH_ARIA_128_CBC_SHA256", "PSK", cbc(16, 32);
    0xc065, "TLS_PSK_WITH_ARIA_256_CBC_SHA384", "PSK", cbc(16, 48);
    0xc066, "TLS_DHE_PSK_WITH_ARIA_128_CBC_SHA256", "DHE_PSK", cbc(16, 32);
    0xc067, "TLS_DHE_PSK_WITH_ARIA_256_CBC_SHA384", "DHE_PSK", cbc(16, 48);
    0xc068, "TLS_RSA_PSK_WITH_ARIA_128_CBC_SHA256", "RSA_PSK", cbc(16, 32);
    0xc069, "TLS_RSA_PSK_WITH_ARIA_256_CBC_SHA384", "RSA_PSK", cbc(16, 48);
    0xc06a, "TLS_PSK_WITH_ARIA_128_GCM_SHA256", "PSK", aead(8, 16);
    0xc06b, "TLS_PSK_WITH_ARIA_256_GCM_SHA384", "PSK", aead(8, 16);
    0xc06c, "TLS_DHE_PSK_WITH_ARIA_128_GCM_SHA256", "DHE_PSK", aead(8, 16);
    0xc06d, "TLS_DHE_PSK_WITH_ARIA_256_GCM_SHA384", "DHE_PSK", aead(8, 16);
    0xc06e, "TLS_RSA_PSK_WITH_ARIA_128_GCM_SHA256", "RSA_PSK", aead(8, 16);
    0xc06f, "TLS_RSA_PSK_WITH_ARIA_256_GCM_SHA384", "RSA_PSK", aead(8, 16);
    0xc070, "TLS_ECDHE_PSK_WITH_ARIA_128_CBC_SHA256", "ECDHE_PSK", cbc(16, 32);
    0xc071, "TLS_ECDHE_PSK_WITH_ARIA_256_CBC_SHA384", "ECDHE_PSK", cbc(16, 48);
    0xc072, "TLS_ECDHE_ECDSA_WITH_CAMELLIA_128_CBC_SHA256", "ECDHE_ECDSA", cbc(16, 32);
    0xc073, "TLS_ECDHE_ECDSA_WITH_CAMELLIA_256_CBC_SHA384", "ECDHE_ECDSA", cbc(16, 48);
    0xc074, "TLS_ECDH_ECDSA_WITH_CAMELLIA_128_CBC_SHA256", "ECDH_ECDSA", cbc(16, 32);
    0xc075, "TLS_ECDH_ECDSA_WITH_CAMELLIA_256_CBC_SHA384", "ECDH_ECDSA", cbc(16, 48);
    0xc076, "TLS_ECDHE_RSA_WITH_CAMELLIA_128_CBC_SHA256", "ECDHE_RSA", cbc(16, 32);
    0xc077, "TLS_ECDHE_RSA_WITH_CAMELLIA_256_CBC_SHA384", "ECDHE_RSA", cbc(16, 48);
    0xc078, "TLS_ECDH_RSA_WITH_CAMELLIA_128_CBC_SHA256", "ECDH_RSA", cbc(16, 32);
    0xc079, "TLS_ECDH_RSA_WITH_CAMELLIA_256_CBC_SHA384", "ECDH_RSA", cbc(16, 48);
    0xc07a, "TLS_RSA_WITH_CAMELLIA_128_GCM_SHA256", "RSA", aead(8, 16);
    0xc07b, "TLS_RSA_WITH_CAMELLIA_256_GCM_SHA384", "RSA", aead(8, 16);
    0xc07c, "TLS_DHE_RSA_WITH_CAMELLIA_128_GCM_SHA256", "DHE_RSA", aead(8, 16);
    0xc07d, "TLS_DHE_RSA_WITH_CAMELLIA_256_GCM_SHA384", "DHE_RSA", aead(8, 16);
    0xc07e, "TLS_DH_RSA_WITH_CAMELLIA_128_GCM_SHA256", "DH_RSA", aead(8, 16);
    0xc07f, "TLS_DH_RSA_WITH_CAMELLIA_256_GCM_SHA384", "DH_RSA", aead(8, 16);
    0xc080, "TLS_DHE_DSS_WITH_CAMELLIA_128_GCM_SHA256", "DHE_DSS", aead(8, 16);
    0xc081, "TLS_DHE_DSS_WITH_CAMELLIA_256_GCM_SHA384", "DHE_DSS", aead(8, 16);
    0xc082, "TLS_DH_DSS_WITH_CAMELLIA_128_GCM_SHA256", "DH_DSS", aead(8, 16);
    0xc083, "TLS_DH_DSS_WITH_CAMELLIA_256_GCM_SHA384", "DH_DSS", aead(8, 16);
    0xc084, "TLS_DH_anon_WITH_CAMELLIA_128_GCM_SHA256", "DH_anon", aead(8, 16);
    0xc085, "TLS_DH_anon_WITH_CAMELLIA_256_GCM_SHA384", "DH_anon", aead(8, 16);
    0xc086, "TLS_ECDHE_ECDSA_WITH_CAMELLIA_128_GCM_SHA256", "ECDHE_ECDSA", aead(8, 16);
    0xc087, "TLS_ECDHE_ECDSA_WITH_CAMELLIA_256_GCM_SHA384", "ECDHE_ECDSA", aead(8, 16);
    0xc088, "TLS_ECDH_ECDSA_WITH_CAMELLIA_128_GCM_SHA256", "ECDH_ECDSA", aead(8, 16);
    0xc089, "TLS_ECDH_ECDSA_WITH_CAMELLIA_256_GCM_SHA384", "ECDH_ECDSA", aead(8, 16);
    0xc08a, "TLS_ECDHE_RSA_WITH_CAMELLIA_128_GCM_SHA256", "ECDHE_RSA", aead(8, 16);
    0xc08b, "TLS_ECDHE_RSA_WITH_CAMELLIA_256_GCM_SHA384", "ECDHE_RSA", aead(8, 16);
    0xc08c, "TLS_ECDH_RSA_WITH_CAMELLIA_128_GCM_SHA256", "ECDH_RSA", aead(8, 16);
    0xc08d, "TLS_ECDH_RSA_WITH_CAMELLIA_256_GCM_SHA384", "ECDH_RSA", aead(8, 16);
    0xc08e, "TLS_PSK_WITH_CAMELLIA_128_GCM_SHA256", "PSK", aead(8, 16);
    0xc08f, "TLS_PSK_WITH_CAMELLIA_256_GCM_SHA384", "PSK", aead(8, 16);
    0xc090, "TLS_DHE_PSK_WITH_CAMELLIA_128_GCM_SHA256", "DHE_PSK", aead(8, 16);
    0xc091, "TLS_DHE_PSK_WITH_CAMELLIA_256_GCM_SHA384", "DHE_PSK", aead(8, 16);
    0xc092, "TLS_RSA_PSK_WITH_CAMELLIA_128_GCM_SHA256", "RSA_PSK", aead(8, 16);
    0xc093, "TLS_RSA_PSK_WITH_CAMELLIA_256_GCM_SHA384", "RSA_PSK", aead(8, 16);
    0xc094, "TLS_PSK_WITH_CAMELLIA_128_CBC_SHA256", "PSK", cbc(16, 32);
    0xc095, "TLS_PSK_WITH_CAMELLIA_256_CBC_SHA384", "PSK", cbc(16, 48);
    0xc096, "TLS_DHE_PSK_WITH_CAMELLIA_128_CBC_SHA256", "DHE_PSK", cbc(16, 32);
    0xc097, "TLS_DHE_PSK_WITH_CAMELLIA_256_CBC_SHA384", "DHE_PSK", cbc(16, 48);
    0xc098, "TLS_RSA_PSK_WITH_CAMELLIA_128_CBC_SHA256", "RSA_PSK", cbc(16, 32);
    0xc099, "TLS_RSA_PSK_WITH_CAMELLIA_256_CBC_SHA384", "RSA_PSK", cbc(16, 48);
    0xc09a, "TLS_ECDHE_PSK_WITH_CAMELLIA_128_CBC_SHA256", "ECDHE_PSK", cbc(16, 32);
    0xc09b, "TLS_ECDHE_PSK_WITH_CAMELLIA_256_CBC_SHA384", "ECDHE_PSK", cbc(16, 48);
    0xc09c, "TLS_RSA_WITH_AES_128_CCM", "RSA", aead(8, 16);
    0xc09d, "TLS_RSA_WITH_AES_256_CCM", "RSA", aead(8, 16);
    0xc09e, "TLS_DHE_RSA_WITH_AES_128_CCM", "DHE_RSA", aead(8, 16);
    0xc09f, "TLS_DHE_RSA_WITH_AES_256_CCM", "DHE_RSA", aead(8, 16);
    0xc0a0, "TLS_RSA_WITH_AES_128_CCM_8", "RSA", aead(8, 8);
    0xc0a1, "TLS_RSA_WITH_AES_256_CCM_8", "RSA", aead(8, 8);
    0xc0a2, "TLS_DHE_RSA_WITH_AES_128_CCM_8", "DHE_RSA", aead(8, 8);
    0xc0a3, "TLS_DHE_RSA_WITH_AES_256_CCM_8", "DHE_RSA", aead(8, 8);
    0xc0a4, "TLS_PSK_WITH_AES_128_CCM", "PSK", aead(8, 16);
    0xc0a5, "TLS_PSK_WITH_AES_256_CCM", "PSK", aead(8, 16);
    0xc0a6, "TLS_DHE_PSK_WITH_AES_128_CCM", "DHE_PSK", aead(8, 16);
    0xc0a7, "TLS_DHE_PSK_WITH_AES_256_CCM", "DHE_PSK", aead(8, 16);
    0xc0a8, "TLS_PSK_WITH_AES_128_CCM_8", "PSK", aead(8, 8);
    0xc0a9, "TLS_PSK_WITH_AES_256_CCM_8", "PSK", aead(8, 8);
    0xc0aa, "TLS_PSK_DHE_WITH_AES_128_CCM_8", "PSK_DHE", aead(8, 8);
    0xc0ab, "TLS_PSK_DHE_WITH_AES_256_CCM_8", "PSK_DHE", aead(8, 8);
    0xc0ac, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM", "ECDHE_ECDSA", aead(8, 16);
    0xc0ad, "TLS_ECDHE_ECDSA_WITH_AES_256_CCM", "ECDHE_ECDSA", aead(8, 16);
    0xc0ae, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", "ECDHE_ECDSA", aead(8, 8);
    0xc0af, "TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8", "ECDHE_ECDSA", aead(8, 8);
    0xc0b0, "TLS_ECCPWD_WITH_AES_128_GCM_SHA256", "ECCPWD", aead(8, 16);
    0xc0b1, "TLS_ECCPWD_WITH_AES_256_GCM_SHA384", "ECCPWD", aead(8, 16);
    0xc0b2, "TLS_ECCPWD_WITH_AES_128_CCM_SHA256", "ECCPWD", aead(8, 16);
    0xc0b3, "TLS_ECCPWD_WITH_AES_256_CCM_SHA384", "ECCPWD", aead(8, 16);
    0xc0b4, "TLS_SHA256_SHA256", "any", aead(0, 32);
    0xc0b5, "TLS_SHA384_SHA384", "any", aead(0, 48);
    0xc0ff, "TLS_ECJPAKE_WITH_AES_128_CCM_8", "ECJPAKE", aead(8, 8);
    0xc100, "TLS_GOSTR341112_256_WITH_KUZNYECHIK_CTR_OMAC", "GOSTR341112_256", stream(16);
    0xc101, "TLS_GOSTR341112_256_WITH_MAGMA_CTR_OMAC", "GOSTR341112_256", stream(8);
    0xc102, "TLS_GOSTR341112_256_WITH_28147_CNT_IMIT", "GOSTR341112_256", stream(4);
    0xc103, "TLS_GOSTR341112_256_WITH_KUZNYECHIK_MGM_L", "GOSTR341112_256", aead(0, 16);
    0xc104, "TLS_GOSTR341112_256_WITH_MAGMA_MGM_L", "GOSTR341112_256", aead(0, 8);
    0xc105, "TLS_GOSTR341112_256_WITH_KUZNYECHIK_MGM_S", "GOSTR341112_256", aead(0, 16);
    0xc106, "TLS_GOSTR341112_256_WITH_MAGMA_MGM_S", "GOSTR341112_256", aead(0, 8);
    0xcc13, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE_RSA", aead(0, 16);
    0xcc14, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE_ECDSA", aead(0, 16);
    0xcc15, "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "DHE_RSA", aead(0, 16);
    0xcca8, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE_RSA", aead(0, 16);
    0xcca9, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE_ECDSA", aead(0, 16);
    0xccaa, "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "DHE_RSA", aead(0, 16);
    0xccab, "TLS_PSK_WITH_CHACHA20_POLY1305_SHA256", "PSK", aead(0, 16);
    0xccac, "TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256", "ECDHE_PSK", aead(0, 16);
    0xccad, "TLS_DHE_PSK_WITH_CHACHA20_POLY1305_SHA256", "DHE_PSK", aead(0, 16);
    0xccae, "TLS_RSA_PSK_WITH_CHACHA20_POLY1305_SHA256", "RSA_PSK", aead(0, 16);
    0xd001, "TLS_ECDHE_PSK_WITH_AES_128_GCM_SHA256", "ECDHE_PSK", aead(8, 16);
    0xd002, "TLS_ECDHE_PSK_WITH_AES_256_GCM_SHA384", "ECDHE_PSK", aead(8, 16);
    0xd003, "TLS_ECDHE_PSK_WITH_AES_128_CCM_8_SHA256", "ECDHE_PSK", aead(8, 8);
    0xd005, "TLS_ECDHE_PSK_WITH_AES_128_CCM_SHA256", "ECDHE_PSK", aead(8, 16);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_in_the_order_of_their_numbers_and_are_found() {
        assert!(CIPHER_SUITES.windows(2).all(|pair| pair[0].number < pair[1].number));
        for suite in CIPHER_SUITES {
            assert_eq!(Some(suite), CipherSuite::find(suite.number));
        }
        assert_eq!(None, CipherSuite::find(0x0a0a));
    }

    #[test]
    fn know_their_hash() {
        assert_eq!(Some(32), CipherSuite::find(0x1301).map(CipherSuite::hash_bytes));
        assert_eq!(Some(48), CipherSuite::find(0x1302).map(CipherSuite::hash_bytes));
    }

    #[test]
    fn hold_their_key_exchange_in_their_name() {
        for suite in CIPHER_SUITES.iter().filter(|suite| suite.name.contains("_WITH_")) {
            assert!(suite.name.starts_with(&format!("TLS_{}_WITH_", suite.key_exchange)), "{}", suite.name);
        }
    }

    /// What a suite up to TLS 1.2 does, by its name: the cipher tells block and nonce, its end the MAC or tag.
    fn by_name(cipher: &str) -> Option<Protection> {
        let is_wide = ["AES", "CAMELLIA", "ARIA", "SEED"].iter().any(|name| cipher.starts_with(name));
        let block = if is_wide { 16 } else { 8 };
        let nonce = if cipher.starts_with("CHACHA20") || cipher.starts_with("SM4") { 0 } else { 8 };
        let macs = [("MD5", 16), ("SHA", 20), ("SHA256", 32), ("SHA384", 48)];
        let mac = macs.iter().find(|(hash, _)| cipher.ends_with(&format!("_{hash}"))).map(|(_, mac)| *mac);
        if cipher.contains("_CCM_8") {
            Some(Protection::Aead { nonce, tag: 8 })
        } else if ["_GCM", "_CCM", "_POLY1305"].iter().any(|mode| cipher.contains(mode)) {
            Some(Protection::Aead { nonce, tag: 16 })
        } else if cipher.contains("_CBC") {
            Some(Protection::Cbc { block, mac: mac? })
        } else if cipher.starts_with("NULL_SHA") || cipher.starts_with("NULL_MD5") || cipher.starts_with("RC4") {
            Some(Protection::Stream { mac: mac? })
        } else {
            None
        }
    }

    #[test]
    fn do_what_their_names_say() {
        let mut checked = 0;
        for suite in CIPHER_SUITES {
            let Some(expected) = suite.name.split_once("_WITH_").and_then(|(_, cipher)| by_name(cipher)) else { continue };
            assert_eq!(expected, suite.protection, "{}", suite.name);
            checked += 1;
        }
        assert!(checked > 300, "{checked}");
    }
}
