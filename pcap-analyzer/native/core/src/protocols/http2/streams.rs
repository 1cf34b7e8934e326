//! Requests and responses by stream (RFC 9113 §8.1, RFC 9114 §4.1); SETTINGS and PING with their acknowledgements.

use crate::exchanges::{ExchangeId, Exchanges, Moment, Placement};
use crate::message::{Message, Side};
use crate::protocols::Pairing;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// A stream's exchange and which of its sides have ended it.
#[derive(Debug)]
struct Open {
    exchange: ExchangeId,
    is_ended: [bool; 2],
    is_answered: bool,
    is_error: bool,
}

/// The exchanges of one connection.
#[derive(Debug, Default)]
pub struct Streams {
    open: FxHashMap<u64, Open>,
    /// SETTINGS and PING of each side that wait for the peer's acknowledgement.
    asked: FxHashMap<(&'static str, Side), ExchangeId>,
}

impl Pairing for Streams {
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let placement = match (message.kind, message.stream_id) {
            // QUIC's PING is acknowledged as any packet is (RFC 9000 §19.2)
            ("SETTINGS" | "PING", Some(_)) => self.ask(message, from, at, exchanges),
            (_, Some(stream_id)) if stream_id > 0 || message.kind == "STREAM" => self.of_stream(stream_id, message, from, at, exchanges),
            _ => Placement { is_data: message.payload_bytes > 0, ..Placement::default() },
        };
        Placement { is_retransmission: message.is_retransmission, ..placement }
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        let mut left: Vec<(ExchangeId, &str)> = self.open.drain().map(|(_, open)| (open.exchange, open.outcome())).collect();
        left.extend(self.asked.drain().map(|(_, exchange)| (exchange, "unanswered")));
        left.sort_unstable();
        for (exchange, outcome) in left {
            exchanges.end(exchange, outcome);
            exchanges.forget(exchange);
        }
    }
}

impl Open {
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
    let wants_rows = exchanges.wants_rows();
    if let Some(begun) = exchanges.get_mut(exchange).filter(|_| wants_rows) {
        begun.resource = message.uri_path.get().unwrap_or("").to_owned();
    }
    exchange
}

impl Streams {
    fn ask(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        if message.variant != "ACK" {
            let exchange = exchanges.open(message.kind, message, from, at);
            if let Some(old) = self.asked.insert((message.kind, from), exchange) {
                exchanges.end(old, "unanswered");
                exchanges.forget(old);
            }
            return Placement { exchange: Some(exchange), ..Placement::default() };
        }
        let Some(exchange) = self.asked.remove(&(message.kind, from.peer())) else { return Placement::default() };
        exchanges.join(exchange, message, at);
        exchanges.acknowledge(exchange, at);
        exchanges.end(exchange, "complete");
        exchanges.forget(exchange);
        Placement { exchange: Some(exchange), ..Placement::default() }
    }

    fn of_stream(&mut self, stream_id: u64, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        match self.open.entry(stream_id) {
            Entry::Occupied(open) => exchanges.join(open.get().exchange, message, at),
            Entry::Vacant(_) if from == Side::Server || message.option_bytes == 0 => {
                return Placement { is_data: message.payload_bytes > 0, ..Placement::default() };
            }
            Entry::Vacant(place) => {
                let exchange = begin(message, from, at, exchanges);
                place.insert(Open { exchange, is_ended: [false; 2], is_answered: false, is_error: false });
            }
        }
        self.go_on(stream_id, message, from, at, exchanges)
    }

    fn go_on(&mut self, stream_id: u64, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let Some(open) = self.open.get_mut(&stream_id) else { return Placement::default() };
        let exchange = open.exchange;
        if from == Side::Server && message.option_bytes > 0 && !message.variant.starts_with('1') {
            exchanges.respond(exchange, at);
            open.is_answered = true;
            open.is_error |= message.variant.starts_with(['4', '5']);
        }
        let wants_rows = exchanges.wants_rows();
        if let Some(row) = exchanges.get_mut(exchange) {
            row.payload_bytes += u64::from(message.payload_bytes);
            if wants_rows && from == Side::Server && message.option_bytes > 0 && message.kind == "HEADERS" && !message.variant.is_empty() {
                message.variant.clone_into(&mut row.result);
            }
        }
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
        Placement { exchange: Some(exchange), is_data, ..Placement::default() }
    }
}
