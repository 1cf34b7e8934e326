//! Requests and their responses, in order (RFC 9112 §9.3.2).

use crate::exchanges::{ExchangeId, Exchanges, Moment, Placement};
use crate::message::{Message, Side};
use crate::protocols::Pairing;
use std::collections::VecDeque;

/// Requests that wait for their response, and the exchange that content goes on in.
#[derive(Debug, Default)]
pub struct Turns {
    waiting: VecDeque<ExchangeId>,
    current: [Option<ExchangeId>; 2],
}

impl Pairing for Turns {
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let exchange = match message.kind {
            "Request" => self.request(message, from, at, exchanges),
            "Response" => self.response(message, at, exchanges),
            _ => self.go_on(message, from, at, exchanges),
        };
        if let Some(current) = self.current.get_mut(from.index()) {
            *current = exchange;
        }
        let is_data = message.payload_bytes > 0 && (message.kind != "Response" || message.variant.starts_with('2'));
        Placement { exchange, is_data, ..Placement::default() }
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        for exchange in self.waiting.drain(..) {
            exchanges.end(exchange, "unanswered");
            exchanges.forget(exchange);
        }
        for exchange in self.current.iter_mut().filter_map(Option::take) {
            exchanges.forget(exchange);
        }
    }
}

impl Turns {
    fn request(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Option<ExchangeId> {
        let exchange = exchanges.open(message.variant, message, from, at);
        let wants_rows = exchanges.wants_rows();
        if let Some(begun) = exchanges.get_mut(exchange) {
            begun.payload_bytes = message.payload_bytes.into();
            if wants_rows {
                begun.resource = message.uri_path.get().unwrap_or("").to_owned();
            }
        }
        self.waiting.push_back(exchange);
        Some(exchange)
    }

    fn response(&mut self, message: &Message, at: &Moment, exchanges: &mut Exchanges) -> Option<ExchangeId> {
        let is_interim = message.variant.starts_with('1') && message.variant != "101";
        let exchange = if is_interim { self.waiting.front().copied() } else { self.waiting.pop_front() }?;
        exchanges.join(exchange, message, at);
        if is_interim {
            return Some(exchange);
        }
        exchanges.respond(exchange, at);
        let wants_rows = exchanges.wants_rows();
        if let Some(answered) = exchanges.get_mut(exchange) {
            answered.payload_bytes += u64::from(message.payload_bytes);
            if wants_rows {
                answered.result = message.variant.to_owned();
            }
        }
        exchanges.end(exchange, "complete");
        // content may follow in messages of its own: the exchange is let go when the next one of the direction begins
        for old in self.current.iter_mut().filter_map(|current| current.take_if(|current| *current != exchange)) {
            if !self.waiting.contains(&old) {
                exchanges.forget(old);
            }
        }
        Some(exchange)
    }

    /// Content of the message before it.
    fn go_on(&self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Option<ExchangeId> {
        let exchange = self.current.get(from.index()).copied().flatten()?;
        exchanges.join(exchange, message, at);
        if let Some(exchange) = exchanges.get_mut(exchange) {
            exchange.payload_bytes += u64::from(message.payload_bytes);
        }
        Some(exchange)
    }
}
