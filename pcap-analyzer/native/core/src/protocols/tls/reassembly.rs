//! Handshake messages out of TLS records: several in one, one over many (RFC 8446 §5.1).

/// Bytes kept of one message. Longer ones are counted to their end, and read as far as they were kept.
const MOST_KEPT: usize = 128 * 1024;

/// Type and length in front of every message.
const HEADER: usize = 4;

/// The message of one direction that has begun and not ended.
#[derive(Debug, Default)]
pub struct Reassembly {
    /// Its bytes so far; fewer than `wire_bytes` where some were not at hand or too many.
    bytes: Vec<u8>,
    wire_bytes: usize,
}

/// What a record shows of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A message of this type begins, and ends in a later record.
    Begins(u8),
    /// More of a message of this type, which is not its end.
    Goes(u8),
    /// A message ends here.
    Ends {
        /// Its type.
        kind: u8,
        /// Its body, as far as it was at hand.
        body: &'a [u8],
        /// Whether its beginning was shown before.
        is_continued: bool,
    },
}

impl Reassembly {
    /// Whether a message is awaited to go on.
    pub fn is_pending(&self) -> bool {
        self.wire_bytes > 0
    }

    /// Forgets the message that has begun.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Cuts a record's fragment of `wire_bytes`, of which `bytes` are at hand, into messages. `see` says false to stop.
    pub fn cut(&mut self, bytes: &[u8], wire_bytes: usize, mut see: impl FnMut(Part<'_>) -> bool) {
        let mut at = 0;
        while at < wire_bytes {
            let rest = bytes.get(at..).unwrap_or(&[]);
            let len = if self.is_pending() { None } else { whole(rest, wire_bytes - at) };
            let goes_on = match len {
                Some(len) => {
                    at += len;
                    see(ends(rest.get(..len).unwrap_or(rest), false))
                }
                None => {
                    let Some(step) = self.add(rest, wire_bytes - at, &mut see) else { return self.clear() };
                    at += step;
                    true
                }
            };
            if !goes_on {
                return self.clear();
            }
        }
    }

    /// Adds to the message that has begun: its header first, then its body. None where it cannot go on.
    fn add(&mut self, rest: &[u8], wire_bytes: usize, see: &mut impl FnMut(Part<'_>) -> bool) -> Option<usize> {
        let had = self.wire_bytes;
        let needed = if had < HEADER { HEADER } else { total(&self.bytes)? };
        let step = (needed - had).min(wire_bytes);
        if self.bytes.len() == had && had < MOST_KEPT {
            self.bytes.extend_from_slice(rest.get(..step).unwrap_or(rest));
        }
        self.wire_bytes += step;
        if self.wire_bytes < HEADER {
            return Some(step);
        }
        let kind = self.bytes.first().copied()?;
        let is_done = self.wire_bytes == total(&self.bytes)?;
        let goes_on = if is_done {
            let message = std::mem::take(self);
            see(ends(&message.bytes, had >= HEADER))
        } else if had < HEADER {
            see(Part::Begins(kind))
        } else if step == wire_bytes {
            see(Part::Goes(kind))
        } else {
            true
        };
        goes_on.then_some(step)
    }
}

/// The length of the message that begins here, where it ends in this record.
fn whole(rest: &[u8], wire_bytes: usize) -> Option<usize> {
    total(rest).filter(|len| *len <= wire_bytes)
}

/// Header and body of the message that begins here.
fn total(bytes: &[u8]) -> Option<usize> {
    let [_, a, b, c, ..] = bytes else { return None };
    usize::try_from(u32::from_be_bytes([0, *a, *b, *c])).ok().map(|length| HEADER + length)
}

fn ends(message: &[u8], is_continued: bool) -> Part<'_> {
    let kind = message.first().copied().unwrap_or_default();
    Part::Ends { kind, body: message.get(HEADER..).unwrap_or(&[]), is_continued }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The messages that come out of records cut at these places.
    fn messages(stream: &[u8], cuts: &[usize]) -> Vec<(u8, Vec<u8>)> {
        let (mut reassembly, mut found, mut at) = (Reassembly::default(), Vec::new(), 0);
        for cut in cuts.iter().copied().chain([stream.len()]) {
            let record = &stream[at..cut.clamp(at, stream.len())];
            at += record.len();
            reassembly.cut(record, record.len(), |part| {
                if let Part::Ends { kind, body, .. } = part {
                    found.push((kind, body.to_vec()));
                }
                true
            });
        }
        assert!(!reassembly.is_pending());
        found
    }

    proptest! {
        #[test]
        fn messages_do_not_depend_on_how_records_cut_them(bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 1..6),
                                                          mut cuts in proptest::collection::vec(0_usize..300, 0..12)) {
            let mut stream = Vec::new();
            let mut expected = Vec::new();
            for (kind, body) in (1_u8..).zip(&bodies) {
                stream.extend([kind, 0, 0, body.len() as u8]);
                stream.extend(body);
                expected.push((kind, body.clone()));
            }
            cuts.sort_unstable();

            prop_assert_eq!(&expected, &messages(&stream, &[]));
            prop_assert_eq!(expected, messages(&stream, &cuts));
        }
    }

    #[test]
    fn a_message_that_is_not_at_hand_is_counted_to_its_end() {
        let mut reassembly = Reassembly::default();
        let mut seen = Vec::new();
        for (bytes, wire_bytes) in [(&[11, 0, 0, 100, 7][..], 60), (&[], 44)] {
            reassembly.cut(bytes, wire_bytes, |part| {
                if let Part::Ends { kind, body, .. } = part {
                    seen.push((kind, body.to_vec()));
                }
                true
            });
        }

        assert_eq!(vec![(11, vec![7])], seen);
    }
}
