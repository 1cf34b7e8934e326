//! What the capture could not show, as rows: nothing is dropped or guessed without one of these.

use std::collections::BTreeMap;
use std::fmt;

/// A kind of note. The table [`NOTES`] says what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NoteKind {
    /// Stable identifier, kebab-case.
    pub id: &'static str,
    /// One sentence for a person, without a full stop.
    pub text: &'static str,
    /// Which figures it affects, as column names or words of the summary.
    pub affects: &'static str,
}

macro_rules! notes {
    ($($constant:ident, $id:literal, $text:literal, $affects:literal;)*) => {
        $(#[doc = $text] pub const $constant: NoteKind = NoteKind { id: $id, text: $text, affects: $affects };)*
        /// All kinds of notes.
        pub const NOTES: &[NoteKind] = &[$($constant),*];
    };
}

notes! {
    // capture
    CUT_SHORT, "cut-short", "the capture ends inside a record or block; what is whole before it is used", "all totals";
    DAMAGED, "damaged", "a record or block of the capture contradicts itself; what is before it is used", "all totals";
    SNAP_LENGTH, "snap-length", "frames were cut by the snap length; sizes come from the original lengths", "fields behind the cut";
    DROPPED, "dropped", "the capturing system reports frames that it dropped", "losses, all totals";
    TIME_BACKWARDS, "time-backwards", "frames are stamped before the frame captured before them", "times, rates";
    TIME_JUMP, "time-jump", "a frame is stamped more than a day away from the frame before it", "times, rates";
    CAPTURED_TWICE, "captured-twice", "packets were captured twice, microseconds apart; the copies count as frames, not as messages", "frame totals";
    LINK_RETRANSMISSION, "link-retransmission", "the link layer sent frames again (IEEE 802.15.4); they count as frames, not as messages", "frame totals";
    LINK_TYPE, "link-type", "frames of a link type that is not decoded", "all that these frames hold";
    LINK_ENCRYPTED, "link-encrypted", "frames are encrypted by their link layer (IEEE 802.15.4, IEEE 802.11); they are not opened", "all that these frames hold";
    // network and transport
    FRAGMENT_MISSING, "fragment-missing", "IP or 6LoWPAN fragments whose datagram never became whole", "messages of these datagrams";
    FRAGMENT_OVERLAP, "fragment-overlap", "fragments hold the same part of a datagram; what came first is used", "payload of these datagrams";
    LENGTH_LIES, "length-lies", "a length field claims more than the packet holds; it was capped", "sizes of these frames";
    HUGE_SEGMENT, "huge-segment", "frames larger than a link carries (segmentation offload): on the wire there were more headers", "overhead";
    CONTEXT_UNKNOWN, "context-unknown", "addresses are compressed with a context (RFC 6282) that is not known; their prefix is taken as zero", "addresses";
    REFUSED, "refused", "ICMP told the sender that packets were not delivered", "losses";
    PEER_MOVED, "peer-moved", "a peer's address changed; its connection ID tells that the session goes on", "addresses of the session's row";
    MID_STREAM, "mid-stream", "the connection began before the capture", "ΔTime, totals, fields that were agreed at its start";
    GAP, "gap", "bytes of the stream are not in the capture; decoding went on at the next message boundary", "messages in the gap, losses";
    UNPARSED, "unparsed", "bytes of the stream belong to no message that could be decoded", "messages";
    UNFINISHED, "unfinished", "the capture ends inside a message", "the last message";
    PORT_SHARED, "port-shared", "datagrams of other protocols between the same ports (RFC 7983: STUN, ZRTP, TURN channels, RTP); they are no messages", "messages of these datagrams";
    // protocols
    MALFORMED, "malformed", "a message breaks its format", "fields of this message";
    UNLIKE_PORT, "unlike-port", "streams on a protocol's port hold other bytes than its messages, or broken ones; -d decodes them all the same", "all that these frames hold";
    HEURISTIC, "heuristic", "the protocol was recognised by its bytes, not by its port; decide with -d", "all of this session";
    VERSION_UNKNOWN, "version-unknown", "the protocol version was agreed before the capture and is inferred", "properties, payload sizes";
    ALIAS_UNKNOWN, "alias-unknown", "a topic alias was set where the capture does not show it", "topic names, links between publisher and subscriber";
    AMBIGUOUS, "ambiguous", "an answer fits several open requests, or what tells them apart was not captured", "response times of these exchanges";
    UNANSWERED, "unanswered", "requests without an answer in the capture", "response times, losses";
    UNMATCHED, "unmatched", "answers to nothing that is open in the capture", "response times, data";
    NOT_ACCEPTED, "not-accepted", "publications that their receiver refuses by a reason code (MQTT 5 §2.4); they reached it, and count as data", "data, goodput, delay";
    SENT_BEFORE, "sent-before", "publications go on that an earlier connection of the client began; they are its data", "data, goodput";
    ENCRYPTED, "encrypted", "content is encrypted; figures come from record sizes and times", "data, goodput, messages";
    COMPRESSED, "compressed", "compressed payload cannot be inflated; data counts as it is on the wire", "data bytes, goodput";
    AHEAD, "ahead", "bytes of a QUIC stream came ahead of those that tell what they are; they are opaque", "data bytes, goodput";
    UNDELIVERED, "undelivered", "publications that no captured subscriber received", "delay, overhead of both legs";
    // figures
    NO_DATA, "no-data", "the session carries no data", "ΔTime, goodput, throughput";
    NO_OPENING, "no-opening", "the receiver's opening message is not in the capture; Time1 is its first message", "ΔTime, goodput, throughput";
    NO_LAST_ACK, "no-last-ack", "the acknowledgement of the last data message is not in the capture; Time2 is the arrival of the data", "ΔTime";
    BOTH_WAYS, "both-ways", "data goes both ways; the figures are those of the direction with more data messages; of closed records, of the one whose records hold more", "goodput, throughput";
    STOPPED, "stopped", "messages after the chosen number of data messages are in no figure", "none";
}

/// All notes of one kind about one session (or the capture): how many, and where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What kind.
    pub kind: NoteKind,
    /// The session it is about; none where it is about the capture.
    pub session: Option<u32>,
    /// Input of the first occurrence.
    pub file: u16,
    /// Frame of the first occurrence.
    pub frame_first: u64,
    /// Frame of the last occurrence.
    pub frame_last: u64,
    /// Occurrences.
    pub count: u64,
    /// What they add to the kind's text.
    pub detail: Detail,
}

/// What occurrences add to the text of their kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// What the first one is (offset, field, section); empty as a rule.
    First(String),
    /// How much all are together, and of what.
    Sum(u64, &'static str),
}

impl Detail {
    /// That of these and of others behind them.
    fn and(self, others: &Self) -> Self {
        match (self, others) {
            (Self::Sum(mine, unit), Self::Sum(more, _)) => Self::Sum(mine + more, unit),
            (first, _) => first,
        }
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First(text) => f.write_str(text),
            Self::Sum(amount, unit) => write!(f, "{amount} {unit}"),
        }
    }
}

impl Note {
    /// One occurrence.
    #[must_use]
    pub const fn one(kind: NoteKind, session: Option<u32>, file: u16, frame: u64, detail: Detail) -> Self {
        Self { kind, session, file, frame_first: frame, frame_last: frame, count: 1, detail }
    }
}

/// Gathers notes, one row a kind and session, so that a million equal remarks stay one row.
#[derive(Debug, Default)]
pub struct Notes {
    rows: BTreeMap<(Option<u32>, &'static str), Note>,
}

impl Notes {
    /// Adds an occurrence; `detail` is called for the first one only.
    pub fn add(&mut self, kind: NoteKind, session: Option<u32>, file: u16, frame: u64, detail: impl FnOnce() -> String) {
        self.rows
            .entry((session, kind.id))
            .and_modify(|note| {
                note.count += 1;
                note.frame_last = frame;
            })
            .or_insert_with(|| Note::one(kind, session, file, frame, Detail::First(detail())));
    }

    /// Adds an occurrence of so many bytes.
    pub fn add_bytes(&mut self, kind: NoteKind, session: Option<u32>, file: u16, frame: u64, bytes: u64) {
        self.take(Note::one(kind, session, file, frame, Detail::Sum(bytes, "bytes")));
    }

    /// Sessions have other numbers from now on.
    #[must_use]
    pub fn renumbered(self, number: impl Fn(u32) -> u32) -> Self {
        let rows = self.rows.into_iter().map(|((session, kind), note)| {
            let session = session.map(&number);
            ((session, kind), Note { session, ..note })
        });
        Self { rows: rows.collect() }
    }

    /// The notes, those about the capture first, then by session.
    pub fn rows(&self) -> impl Iterator<Item = &Note> {
        self.rows.values()
    }

    /// The notes about one session, or about the capture.
    pub fn of(&self, session: Option<u32>) -> impl Iterator<Item = &Note> {
        self.rows.range((session, "")..).take_while(move |((of, _), _)| *of == session).map(|(_, note)| note)
    }

    /// Takes the notes of another gatherer in.
    pub fn absorb(&mut self, other: Self) {
        other.rows.into_values().for_each(|note| self.take(note));
    }

    /// Takes a note in that may stand for several occurrences.
    pub fn take(&mut self, note: Note) {
        self.rows
            .entry((note.session, note.kind.id))
            .and_modify(|mine| {
                // the first occurrence is the first in the capture, whichever thread tells of it first
                let is_first = (note.file, note.frame_first) < (mine.file, mine.frame_first);
                let (first, second) = if is_first { (&note, &*mine) } else { (&*mine, &note) };
                let (count, frame_last) = (mine.count + note.count, mine.frame_last.max(note.frame_last));
                *mine = Note { count, frame_last, detail: first.detail.clone().and(&second.detail), ..first.clone() };
            })
            .or_insert(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_all_occurrences_add_up_and_words_are_those_of_the_first() {
        let mut notes = Notes::default();
        for (frame, bytes) in [(7, 10), (3, 200), (9, 1)] {
            notes.add_bytes(GAP, Some(1), 0, frame, bytes);
        }
        let detail = |text: &str| Detail::First(text.to_owned());
        notes.take(Note::one(DAMAGED, None, 1, 5, detail("second")));
        notes.take(Note::one(DAMAGED, None, 0, 8, detail("first")));

        let told: Vec<_> = notes.rows().map(|note| (note.count, note.frame_first, note.frame_last, note.detail.to_string())).collect();
        assert_eq!(vec![(2, 8, 8, "first".to_owned()), (3, 3, 9, "211 bytes".to_owned())], told);
    }
}
