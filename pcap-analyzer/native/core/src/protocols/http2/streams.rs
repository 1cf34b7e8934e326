//! Requests and responses by stream (RFC 9113 §8.1, RFC 9114 §4.1); SETTINGS and PING with their acknowledgements.

use crate::exchanges::{ExchangeId, Exchanges, Moment, Placement};
use crate::message::{Message, Side};
use crate::protocols::Pairing;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::collections::VecDeque;

/// A stream's exchange and which of its sides have ended it.
#[derive(Debug)]
struct Open {
    exchange: ExchangeId,
    is_ended: [bool; 2],
    is_answered: bool,
    is_error: bool,
    is_pushed: bool,
}

/// SETTINGS or PING of a side that waits for the peer's acknowledgement.
#[derive(Debug)]
struct Asked {
    kind: &'static str,
    from: Side,
    tag: u64,
    exchange: ExchangeId,
}

/// The exchanges of one connection.
#[derive(Debug, Default)]
pub struct Streams {
    open: FxHashMap<u64, Open>,
    asked: VecDeque<Asked>,
    /// The last stream that HTTP/2's client opened: their numbers grow (RFC 9113 §5.1.1).
    last: u64,
}

impl Pairing for Streams {
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let placement = match (message.kind, message.stream_id) {
            // QUIC's PING is acknowledged as any packet is (RFC 9000 §19.2)
            ("SETTINGS" | "PING", Some(_)) => self.ask(message, from, at, exchanges),
            ("PUSH_PROMISE", _) => self.promise(message, from, at, exchanges),
            (_, Some(stream_id)) if stream_id > 0 || message.kind == "STREAM" => self.of_stream(stream_id, message, from, at, exchanges),
            _ => Placement { is_data: message.payload_bytes > 0, ..Placement::default() },
        };
        Placement { is_retransmission: message.is_retransmission, ..placement }
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        let mut left: Vec<(ExchangeId, &str)> = self.open.drain().map(|(_, open)| (open.exchange, open.outcome())).collect();
        left.extend(self.asked.drain(..).map(|asked| (asked.exchange, "unanswered")));
        left.sort_unstable();
        for (exchange, outcome) in left {
            exchanges.end(exchange, outcome);
            exchanges.forget(exchange);
        }
    }
}

impl Open {
    /// Takes what a field section tells, where there is one, and the bytes of content.
    fn learn(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) {
        let has_status = from == Side::Server && message.variant.starts_with(|first: char| first.is_ascii_digit());
        if from == Side::Server && message.option_bytes > 0 && !message.variant.starts_with('1') {
            if !self.is_pushed {
                exchanges.respond(self.exchange, at);
            }
            self.is_answered = true;
            self.is_error |= has_status && !message.variant.starts_with('2');
        }
        let is_named_late = from == Side::Client && message.kind == "CONTINUATION" && !message.variant.is_empty();
        if is_named_late {
            name(self.exchange, message, exchanges);
        }
        let wants_rows = exchanges.wants_rows();
        let Some(row) = exchanges.get_mut(self.exchange) else { return };
        row.payload_bytes += u64::from(message.payload_bytes);
        if is_named_late {
            row.kind = message.variant;
        }
        if wants_rows && has_status {
            message.variant.clone_into(&mut row.result);
        }
    }

    /// How the exchange stands where the capture ends.
    fn outcome(&self) -> &'static str {
        match self.is_ended {
            [true, false] if !self.is_answered => "unanswered",
            _ => "open",
        }
    }
}

fn begin(message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> ExchangeId {
    let kind = if message.variant.is_empty() || message.kind == "STREAM" { "request" } else { message.variant };
    let exchange = exchanges.open(kind, message, from, at);
    name(exchange, message, exchanges);
    exchange
}

/// Puts down what a request is about.
fn name(exchange: ExchangeId, message: &Message, exchanges: &mut Exchanges) {
    let wants_rows = exchanges.wants_rows();
    if let Some(begun) = exchanges.get_mut(exchange).filter(|_| wants_rows) {
        begun.resource = message.uri_path.get().unwrap_or("").to_owned();
    }
}

impl Streams {
    /// The request before an upgrade is the one of stream 1, and whole (RFC 7540 §3.2).
    pub fn behind_upgrade(exchange: ExchangeId) -> Self {
        let open = Open { exchange, is_ended: [true, false], is_answered: false, is_error: false, is_pushed: false };
        Self { open: std::iter::once((1, open)).collect(), last: 1, ..Self::default() }
    }

    fn ask(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let (kind, tag) = (message.kind, message.body_tag);
        if message.variant != "ACK" {
            let exchange = exchanges.open(kind, message, from, at);
            self.asked.push_back(Asked { kind, from, tag, exchange });
            return Placement::of(exchange);
        }
        // SETTINGS are acknowledged in their order, a PING with its data (RFC 9113 §6.5.3, §6.7)
        let place = self.asked.iter().position(|asked| (asked.kind, asked.from, asked.tag) == (kind, from.peer(), tag));
        let Some(Asked { exchange, .. }) = place.and_then(|place| self.asked.remove(place)) else { return Placement::UNMATCHED };
        exchanges.join(exchange, message, at);
        exchanges.acknowledge(exchange, at);
        exchanges.end(exchange, "complete");
        exchanges.forget(exchange);
        Placement::of(exchange)
    }

    /// What a server sends unasked is an exchange of the stream that it promises (RFC 9113 §8.4).
    fn promise(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let exchange = exchanges.open("push", message, from, at);
        name(exchange, message, exchanges);
        let open = Open { exchange, is_ended: [true, false], is_answered: true, is_error: false, is_pushed: true };
        if let Some(old) = self.open.insert(message.body_tag, open) {
            exchanges.end(old.exchange, "superseded");
            exchanges.forget(old.exchange);
        }
        Placement::of(exchange)
    }

    fn of_stream(&mut self, stream_id: u64, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let is_http2 = message.kind != "STREAM";
        match self.open.entry(stream_id) {
            Entry::Occupied(open) => exchanges.join(open.get().exchange, message, at),
            Entry::Vacant(_) if from == Side::Server || message.option_bytes == 0 || (is_http2 && stream_id <= self.last) => {
                let is_answer = from == Side::Server && message.kind == "HEADERS" && stream_id % 2 == 1;
                let known = if is_answer { Placement::UNMATCHED } else { Placement::default() };
                return Placement { is_data: message.payload_bytes > 0, ..known };
            }
            Entry::Vacant(place) => {
                let exchange = begin(message, from, at, exchanges);
                place.insert(Open { exchange, is_ended: [false; 2], is_answered: false, is_error: false, is_pushed: false });
                self.last = self.last.max(stream_id);
            }
        }
        self.go_on(stream_id, message, from, at, exchanges)
    }

    fn go_on(&mut self, stream_id: u64, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let Some(open) = self.open.get_mut(&stream_id) else { return Placement::default() };
        let exchange = open.exchange;
        open.learn(message, from, at, exchanges);
        let is_data = message.payload_bytes > 0 && !open.is_error;
        if let Some(is_ended) = open.is_ended.get_mut(from.index()) {
            *is_ended |= message.facts.is_end_of_stream;
        }
        let outcome = match (message.kind, open.is_ended) {
            ("RST_STREAM", _) => Some("reset"),
            (_, [true, true]) => Some("complete"),
            _ => None,
        };
        if let Some(outcome) = outcome {
            exchanges.end(exchange, outcome);
            exchanges.forget(exchange);
            self.open.remove(&stream_id);
        }
        Placement { is_data, ..Placement::of(exchange) }
    }
}
