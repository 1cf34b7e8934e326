//! HPACK's instructions (RFC 7541 §6), only as far as to know that they are whole: fluke-hpack panics at a table size that is none.

/// Bytes behind its prefix that an integer may take (RFC 7541 §5.1 leaves the limit to the decoder).
const MOST_OCTETS: usize = 4;

/// Whether a field block is a row of whole instructions.
pub(super) fn are_whole(block: &[u8]) -> bool {
    let mut rest = block;
    while !rest.is_empty() {
        let Some(after) = instruction(rest) else { return false };
        rest = after;
    }
    true
}

/// What follows the instruction at the start: indexed (§6.1), literal with its name and value (§6.2), or table size update (§6.3).
fn instruction(bytes: &[u8]) -> Option<&[u8]> {
    let prefix = match *bytes.first()? {
        0x80.. => return integer(bytes, 7).map(|(_, rest)| rest),
        0x40.. => 6,
        0x20.. => return integer(bytes, 5).map(|(_, rest)| rest),
        _ => 4,
    };
    let (index, rest) = integer(bytes, prefix)?;
    let rest = if index == 0 { string(rest)? } else { rest };
    string(rest)
}

/// §5.2
fn string(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = integer(bytes, 7)?;
    rest.get(length..)
}

/// §5.1
fn integer(bytes: &[u8], prefix: u32) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let most = (1 << prefix) - 1;
    let mut value = usize::from(*first) & most;
    if value < most {
        return Some((value, rest));
    }
    for (at, byte) in rest.iter().take(MOST_OCTETS).enumerate() {
        value += usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, rest.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_whole_and_cut_ones_are_not() {
        // RFC 7541 C.1.2 (1337 with a prefix of 5 bits), C.2.1 to C.2.4, C.6.1's first bytes
        assert_eq!(Some((1337, &[][..])), integer(&[31, 154, 10], 5));
        let custom = b"\x40\x0acustom-key\x0dcustom-header";
        for block in [&custom[..], b"\x04\x0c/sample/path", b"\x10\x08password\x06secret", b"\x82", b"\x48\x82\x64\x02"] {
            assert!(are_whole(block));
        }
        assert!((1..custom.len()).all(|len| !are_whole(&custom[..len])));
    }

    #[test]
    fn a_table_size_that_does_not_end_is_not_whole() {
        assert!(are_whole(b"\x3f\xe1\x1f"));
        assert!(!are_whole(b"\x3f"));
        assert!(!are_whole(b"\x3f\x85\x85\x85\x85\x85"));
    }
}
