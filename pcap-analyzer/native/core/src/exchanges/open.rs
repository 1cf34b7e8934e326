//! The open exchanges of all conversations in one place, with a bound only in what is open.

use super::linking::Linking;
use super::Moment;
use crate::message::{is_same_word, Message, Parts, Side, Token};

/// Names an exchange, open or ended; the number in the table `exchanges`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ExchangeId {
    /// Number of the exchange in the capture.
    pub number: u64,
    slot: u32,
}

impl ExchangeId {
    /// One that began before the capture, of which there is no row: `nth` of its conversation.
    #[must_use]
    pub const fn before_capture(nth: u16) -> Self {
        Self { number: u64::MAX - nth as u64, slot: u32::MAX }
    }
}

/// A measured time (names as in the table `timings`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timing {
    /// First transmission to acknowledgement.
    AckRtt,
    /// First transmission to response.
    Rtt,
    /// Both at once: the acknowledgement is, or brings, the response.
    AckAndRtt,
    /// Publisher's PUBLISH to its delivery.
    Delay,
    /// Notification to notification, request to request for one resource.
    Interval,
    /// SYN to SYN-ACK to ACK.
    TcpHandshake,
    /// Segment to its acknowledgement.
    TcpAck,
}

impl Timing {
    /// How many there are.
    pub const COUNT: usize = Self::TcpAck as usize + 1;

    /// The names in the table `timings` of the times that a sample counts for.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::AckRtt => &["ack_rtt"],
            Self::Rtt => &["rtt"],
            Self::AckAndRtt => &["ack_rtt", "rtt"],
            Self::Delay => &["delay"],
            Self::Interval => &["interval"],
            Self::TcpHandshake => &["tcp_handshake"],
            Self::TcpAck => &["tcp_ack"],
        }
    }
}

/// How an exchange ended, as far as sessions count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With its answer.
    Complete,
    /// Without.
    Unanswered,
    /// By a RST.
    Reset,
    /// Nobody can tell.
    Ambiguous,
    /// In another way.
    Other,
}

impl Outcome {
    fn of(word: &str) -> Self {
        match word {
            "complete" => Self::Complete,
            "unanswered" => Self::Unanswered,
            "reset" => Self::Reset,
            "ambiguous" => Self::Ambiguous,
            _ => Self::Other,
        }
    }
}

/// A measured time; or none. That there is none is told by a field, not by an `Option` around it: so it is passed on field by field. A processor waits
/// where it copies at once what was written in pieces just before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// Which time; None where there is none.
    pub timing: Option<Timing>,
    /// Kind of exchange; empty for TCP's.
    pub kind: &'static str,
    /// The time.
    pub time_ns: i64,
    /// Whether the exchange's first message was sent again, so that the sample is ambiguous (Karn; trap 8).
    pub is_retransmitted: bool,
}

impl Sample {
    /// Whether it is the time to a response that is the acknowledgement too, whose time was `acknowledged`.
    #[inline]
    fn completes(&self, acknowledged: &Self) -> bool {
        acknowledged.timing == Some(Timing::AckRtt)
            && (acknowledged.time_ns, acknowledged.is_retransmitted) == (self.time_ns, self.is_retransmitted)
            && is_same_word(acknowledged.kind, self.kind)
    }
}

/// What the exchanges tell the sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// A time was measured.
    Sample {
        /// Session it counts for.
        session: u32,
        /// The time.
        sample: Sample,
    },
    /// An exchange ended.
    Ended {
        /// Its session.
        session: u32,
        /// Its number.
        number: u64,
        /// How.
        outcome: Outcome,
    },
    /// Bytes of a publisher's leg that count for a subscriber's session (metrics.md, formula 4).
    PublisherLeg {
        /// The subscriber's session.
        session: u32,
        /// Who sends the data in that session.
        from: Side,
        /// The publisher's session.
        publisher: u32,
        /// The bytes.
        parts: Parts,
    },
    /// Publications of this session were delivered to nobody in the capture.
    Undelivered {
        /// The publisher's session.
        session: u32,
        /// How many.
        publications: u64,
    },
}

impl Event {
    /// The session that it counts for.
    #[inline]
    #[must_use]
    pub const fn session(&self) -> u32 {
        match *self {
            Self::Sample { session, .. }
            | Self::Ended { session, .. }
            | Self::PublisherLeg { session, .. }
            | Self::Undelivered { session, .. } => session,
        }
    }
}

/// An exchange as it is known so far. Times are of first transmissions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exchange {
    /// Number in the capture.
    pub number: u64,
    /// Session.
    pub session: u32,
    /// Protocol, by Wireshark's filter name.
    pub protocol: &'static str,
    /// What kind.
    pub kind: &'static str,
    /// Who began it.
    pub from: Option<Side>,
    /// How it ended; empty while open.
    pub outcome: &'static str,
    /// Input of the first message.
    pub file: u16,
    /// First frame.
    pub frame_first: u64,
    /// Last frame.
    pub frame_last: u64,
    /// Frame of the acknowledgement.
    pub frame_ack: Option<u64>,
    /// Frame of the response.
    pub frame_response: Option<u64>,
    /// First transmission of its first message.
    pub time_ns: i64,
    /// See the table `exchanges`.
    pub ack_rtt_ns: Option<i64>,
    /// See the table `exchanges`.
    pub rtt_ns: Option<i64>,
    /// See the table `exchanges`.
    pub delay_ns: Option<i64>,
    /// See the table `exchanges`.
    pub interval_ns: Option<i64>,
    /// See the table `exchanges`.
    pub parent: Option<u64>,
    /// Messages.
    pub messages: u32,
    /// Retransmissions among them.
    pub retransmissions: u32,
    /// Whether the message that began it was sent again before it was answered.
    pub is_opening_repeated: bool,
    /// Blocks, flights.
    pub parts: Option<u32>,
    /// Data bytes, each once.
    pub payload_bytes: u64,
    /// Bytes on the wire.
    pub frame_bytes: u64,
    /// CoAP token.
    pub token: Token,
    /// Message ID or packet identifier of the first message.
    pub message_id: Option<u16>,
    /// What it is about, where text is wanted.
    pub resource: String,
    /// The answer's code, where text is wanted.
    pub result: String,
}

impl Exchange {
    /// Begins with `message`, where another exchange was before.
    #[inline]
    fn begin(&mut self, number: u64, kind: &'static str, message: &Message, from: Side, at: &Moment) {
        (self.number, self.session, self.protocol, self.kind) = (number, at.session, message.protocol, kind);
        (self.from, self.outcome, self.file) = (Some(from), "", at.file);
        (self.frame_first, self.frame_last, self.frame_ack, self.frame_response) = (at.frame, at.frame, None, None);
        self.time_ns = at.time_ns;
        (self.ack_rtt_ns, self.rtt_ns, self.delay_ns, self.interval_ns, self.parent) = (None, None, None, None, None);
        (self.messages, self.retransmissions, self.is_opening_repeated, self.parts) = (1, 0, false, None);
        (self.payload_bytes, self.frame_bytes) = (0, message.frame_bytes.into());
        (self.token, self.message_id) = (message.token, message.message_id);
        self.resource.clear();
        self.result.clear();
    }
}

/// The exchanges that are open. Ended ones leave by the sink, or are forgotten where none was asked for.
#[derive(Debug, Default)]
pub struct Exchanges {
    slots: Vec<Exchange>,
    free: Vec<u32>,
    next: u64,
    wants_rows: bool,
    ended: Vec<Exchange>,
    pub(super) events: Vec<Event>,
    pub(super) linking: Linking,
    /// Number of the packet that messages are of, among all packets.
    pub(super) order: u64,
}

impl Exchanges {
    /// Exchanges, ended ones kept for [`Exchanges::take_ended`] where rows are wanted.
    #[must_use]
    pub fn new(wants_rows: bool) -> Self {
        Self { wants_rows, ..Self::default() }
    }

    /// Whether rows (and so their texts) are wanted.
    #[must_use]
    pub const fn wants_rows(&self) -> bool {
        self.wants_rows
    }

    /// Begins an exchange with `message`.
    pub fn open(&mut self, kind: &'static str, message: &Message, from: Side, at: &Moment) -> ExchangeId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Exchange::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let id = ExchangeId { number: self.next, slot };
        self.next += 1;
        if let Some(exchange) = self.slots.get_mut(slot as usize) {
            exchange.begin(id.number, kind, message, from, at);
        }
        id
    }

    /// The exchange, as long as it is not forgotten.
    #[must_use]
    pub fn get(&self, id: ExchangeId) -> Option<&Exchange> {
        self.slots.get(id.slot as usize).filter(|exchange| exchange.number == id.number && exchange.from.is_some())
    }

    /// The exchange, to be changed.
    pub fn get_mut(&mut self, id: ExchangeId) -> Option<&mut Exchange> {
        self.slots.get_mut(id.slot as usize).filter(|exchange| exchange.number == id.number && exchange.from.is_some())
    }

    /// Adds a message to an exchange: counts it and its bytes.
    pub fn join(&mut self, id: ExchangeId, message: &Message, at: &Moment) {
        if let Some(exchange) = self.get_mut(id) {
            exchange.messages += 1;
            exchange.frame_last = at.frame;
            exchange.frame_bytes += u64::from(message.frame_bytes);
        }
    }

    /// Adds a message that its sender sent before. `is_opening` tells that it is the one that began the exchange: its times are then no samples.
    pub fn repeat(&mut self, id: ExchangeId, message: &Message, at: &Moment, is_opening: bool) {
        self.join(id, message, at);
        self.again(id, is_opening);
    }

    /// The same of a message that the exchange has.
    pub fn again(&mut self, id: ExchangeId, is_opening: bool) {
        if let Some(exchange) = self.get_mut(id) {
            exchange.retransmissions += 1;
            exchange.is_opening_repeated |= is_opening && exchange.ack_rtt_ns.is_none() && exchange.rtt_ns.is_none();
        }
    }

    /// The acknowledgement came: sets `ack_rtt_ns` the first time and reports the sample.
    pub fn acknowledge(&mut self, id: ExchangeId, at: &Moment) {
        let Some(exchange) = self.get_mut(id) else { return };
        if exchange.ack_rtt_ns.is_some() {
            return;
        }
        let time_ns = at.time_ns - exchange.time_ns;
        exchange.ack_rtt_ns = Some(time_ns);
        exchange.frame_ack = Some(at.frame);
        self.sample(id, Timing::AckRtt, time_ns);
    }

    /// The response came: sets `rtt_ns` the first time and reports the sample.
    pub fn respond(&mut self, id: ExchangeId, at: &Moment) {
        let Some(exchange) = self.get_mut(id) else { return };
        if exchange.rtt_ns.is_some() {
            return;
        }
        let time_ns = at.time_ns - exchange.time_ns;
        exchange.rtt_ns = Some(time_ns);
        exchange.frame_response = Some(at.frame);
        self.sample(id, Timing::Rtt, time_ns);
    }

    /// The time since the event before it that it is compared with (notification, poll).
    pub fn interval(&mut self, id: ExchangeId, interval_ns: i64) {
        let Some(exchange) = self.get_mut(id) else { return };
        exchange.interval_ns = Some(interval_ns);
        self.sample(id, Timing::Interval, interval_ns);
    }

    fn sample(&mut self, id: ExchangeId, timing: Timing, time_ns: i64) {
        let Some(exchange) = self.get(id) else { return };
        let is_retransmitted = exchange.is_opening_repeated && matches!(timing, Timing::AckRtt | Timing::Rtt);
        let session = exchange.session;
        let sample = Sample { timing: Some(timing), kind: exchange.kind, time_ns, is_retransmitted };
        match self.events.last_mut() {
            Some(Event::Sample { session: of, sample: last }) if timing == Timing::Rtt && *of == session && sample.completes(last) => {
                last.timing = Some(Timing::AckAndRtt);
            }
            _ => self.events.push(Event::Sample { session, sample }),
        }
    }

    /// Decides how it ended, the first time: reports it, and keeps the exchange until [`Exchanges::forget`], so that late duplicates find it.
    pub fn end(&mut self, id: ExchangeId, outcome: &'static str) {
        let Some(exchange) = self.get_mut(id) else { return };
        if exchange.outcome.is_empty() {
            exchange.outcome = outcome;
            let (session, number) = (exchange.session, exchange.number);
            self.events.push(Event::Ended { session, number, outcome: Outcome::of(outcome) });
        }
    }

    /// Lets go of an exchange: nothing can join it any more. One that was not ended is "open".
    pub fn forget(&mut self, id: ExchangeId) {
        self.end(id, "open");
        let wants_rows = self.wants_rows;
        let Some(exchange) = self.get_mut(id) else { return };
        if wants_rows {
            let ended = std::mem::take(exchange);
            self.ended.push(ended);
        } else {
            exchange.from = None;
        }
        self.free.push(id.slot);
    }

    /// The capture ends: what nobody let go is let go.
    pub fn finish(&mut self) {
        self.finish_links();
        for slot in 0..self.slots.len() {
            let Some(exchange) = self.slots.get(slot).filter(|exchange| exchange.from.is_some()) else { continue };
            self.forget(ExchangeId { number: exchange.number, slot: u32::try_from(slot).unwrap_or(u32::MAX) });
        }
    }

    /// What happened since the last call.
    #[inline]
    pub fn take_events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain(..)
    }

    /// The exchanges that were let go since the last call.
    pub fn take_ended(&mut self) -> Vec<Exchange> {
        std::mem::take(&mut self.ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_the_exchange_that_was_in_a_place_before() {
        let at = Moment { session: 2, file: 1, frame: 9, time_ns: 70, ..Moment::default() };
        let message = Message::default();
        let mut used = Exchange {
            outcome: "reset",
            frame_ack: Some(3),
            frame_response: Some(4),
            ack_rtt_ns: Some(1),
            rtt_ns: Some(1),
            delay_ns: Some(1),
            interval_ns: Some(1),
            parent: Some(1),
            messages: 7,
            retransmissions: 2,
            is_opening_repeated: true,
            parts: Some(3),
            payload_bytes: 10,
            frame_bytes: 11,
            token: Token::new(&[1]),
            message_id: Some(5),
            resource: "temp".to_owned(),
            result: "2.05".to_owned(),
            ..Exchange::default()
        };
        let mut fresh = Exchange::default();
        for exchange in [&mut used, &mut fresh] {
            exchange.begin(12, "GET", &message, Side::Client, &at);
        }

        assert_eq!((12, 2, 1), (fresh.number, fresh.session, fresh.messages));
        assert_eq!(fresh, used);
    }

    #[test]
    fn who_still_names_an_exchange_that_was_let_go_changes_none_in_its_place() {
        let (mut exchanges, message, at) = (Exchanges::new(true), Message::default(), Moment::default());
        let old = exchanges.open("GET", &message, Side::Client, &at);
        exchanges.forget(old);
        let new = exchanges.open("GET", &message, Side::Client, &at);
        assert_eq!(old.slot, new.slot);
        exchanges.repeat(old, &message, &at, true);
        exchanges.respond(old, &at);
        exchanges.end(old, "unanswered");

        assert_eq!(None, exchanges.get(old));
        assert_eq!(Some((1, None, "")), exchanges.get(new).map(|exchange| (exchange.messages, exchange.rtt_ns, exchange.outcome)));
        exchanges.forget(new);
        exchanges.repeat(new, &message, &at, true);
        assert_eq!(vec![(0, 1), (1, 1)], exchanges.take_ended().iter().map(|ended| (ended.number, ended.messages)).collect::<Vec<_>>());
    }
}
