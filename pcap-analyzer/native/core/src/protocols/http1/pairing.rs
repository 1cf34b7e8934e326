//! Requests and their responses, in order (RFC 9112 §9.3.2).

use crate::exchanges::{ExchangeId, Exchanges, Moment, Placement};
use crate::message::{Message, Side};
use crate::protocols::http2::{Streams, HTTP2};
use crate::protocols::Pairing;
use std::collections::VecDeque;

/// The kind of exchange that takes the connection on to another protocol (RFC 9110 §7.8).
const UPGRADE: &str = "upgrade";

/// A request that waits for its response; or of which not all has come, although there is a response (RFC 9110 §10.1.1, RFC 9112 §9.3).
#[derive(Debug)]
struct Turn {
    /// The request's number in the connection.
    number: u64,
    exchange: ExchangeId,
    is_sent: bool,
    is_answered: bool,
}

/// Where content goes on that comes in messages of its own.
#[derive(Debug, Clone, Copy)]
struct Current {
    number: u64,
    exchange: ExchangeId,
    is_data: bool,
}

/// Requests that wait for their response, and the exchange that content goes on in.
#[derive(Debug, Default)]
pub struct Turns {
    waiting: VecDeque<Turn>,
    current: [Option<Current>; 2],
    /// The exchange that HTTP/2 goes on with.
    upgraded: Option<ExchangeId>,
}

impl Pairing for Turns {
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let has_content = message.payload_bytes > 0;
        if !matches!(message.kind, "Request" | "Response") {
            let current = self.go_on(message, from, at, exchanges);
            let is_data = has_content && current.is_none_or(|current| current.is_data);
            return Placement { exchange: current.map(|current| current.exchange), is_data, ..Placement::default() };
        }
        let is_request = message.kind == "Request";
        let exchange =
            if is_request { Some(self.request(message, from, at, exchanges)) } else { self.response(message, from, at, exchanges) };
        let is_data = is_request || message.variant.starts_with('2') || message.variant == "101";
        if let Some(current) = self.current.get_mut(from.index()) {
            *current = exchange.map(|exchange| Current { number: message.body_tag, exchange, is_data });
        }
        let answered = exchange.map_or(Placement::UNMATCHED, Placement::of);
        Placement { is_data: is_data && has_content, ..answered }
    }

    fn successor(&mut self) -> Option<Box<dyn Pairing>> {
        let exchange = self.upgraded.take()?;
        self.waiting.retain(|turn| turn.exchange != exchange);
        for current in &mut self.current {
            current.take_if(|current| current.exchange == exchange);
        }
        Some(Box::new(Streams::behind_upgrade(exchange)))
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        for turn in self.waiting.drain(..) {
            exchanges.end(turn.exchange, "unanswered");
            exchanges.forget(turn.exchange);
        }
        for current in self.current.iter_mut().filter_map(Option::take) {
            exchanges.forget(current.exchange);
        }
    }
}

impl Turns {
    fn request(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> ExchangeId {
        let early = self.waiting.back_mut().filter(|turn| turn.number == message.body_tag && !turn.is_sent);
        let Some(turn) = early else {
            let exchange = exchanges.open(kind(message), message, from, at);
            tell(exchange, message, exchanges);
            self.waiting.push_back(Turn { number: message.body_tag, exchange, is_sent: true, is_answered: false });
            return exchange;
        };
        let exchange = turn.exchange;
        turn.is_sent = true;
        if turn.is_answered {
            self.waiting.pop_back();
        }
        exchanges.join(exchange, message, at);
        if let Some(begun) = exchanges.get_mut(exchange) {
            (begun.kind, begun.time_ns) = (kind(message), at.time_ns);
        }
        tell(exchange, message, exchanges);
        exchange
    }

    fn response(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Option<ExchangeId> {
        if message.body_tag == 0 {
            return None;
        }
        self.pass_over(message.body_tag, exchanges);
        // an upgrade to HTTP/2 is answered there, by a response of its own (RFC 7540 §3.2)
        let is_upgrade = message.carries_on == Some(HTTP2.decode_as);
        let is_interim = message.variant.starts_with('1') && (message.variant != "101" || is_upgrade);
        let (exchange, is_sent) = match self.waiting.front_mut() {
            Some(turn) => {
                exchanges.join(turn.exchange, message, at);
                turn.is_answered = !is_interim;
                (turn.exchange, turn.is_sent)
            }
            None => {
                let exchange = exchanges.open("request", message, from.peer(), at);
                self.waiting.push_back(Turn { number: message.body_tag, exchange, is_sent: false, is_answered: !is_interim });
                (exchange, false)
            }
        };
        if is_interim {
            self.upgraded = is_upgrade.then_some(exchange);
            return Some(exchange);
        }
        if message.variant == "101" {
            // no GET of the protocol that the connection goes on in, which may have such requests too
            exchanges.get_mut(exchange).into_iter().for_each(|answered| answered.kind = UPGRADE);
        }
        if is_sent {
            exchanges.respond(exchange, at);
            self.waiting.pop_front();
        }
        answer(exchange, message, exchanges);
        exchanges.end(exchange, "complete");
        self.let_go(exchange, exchanges);
        Some(exchange)
    }

    /// Of what was asked before the request that is answered, a gap hides which was.
    fn pass_over(&mut self, number: u64, exchanges: &mut Exchanges) {
        let passed = self.waiting.iter().take_while(|turn| turn.number < number).count();
        for turn in self.waiting.drain(..passed) {
            exchanges.end(turn.exchange, "ambiguous");
            exchanges.forget(turn.exchange);
        }
    }

    /// Content may follow in messages of its own: an exchange is let go when the next one of the direction is answered.
    fn let_go(&mut self, next: ExchangeId, exchanges: &mut Exchanges) {
        let first_waiting = self.waiting.front().map_or(u64::MAX, |turn| turn.number);
        for old in self.current.iter_mut().filter_map(|current| current.take_if(|current| current.exchange != next)) {
            if old.number < first_waiting {
                exchanges.forget(old.exchange);
            }
        }
    }

    /// Content of the message before it.
    fn go_on(&self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Option<Current> {
        let current = self.current.get(from.index()).copied().flatten()?;
        exchanges.join(current.exchange, message, at);
        if let Some(exchange) = exchanges.get_mut(current.exchange) {
            exchange.payload_bytes += u64::from(message.payload_bytes);
        }
        Some(current)
    }
}

/// A method that is not registered has no word of ours.
fn kind(request: &Message) -> &'static str {
    if request.variant.is_empty() {
        "request"
    } else {
        request.variant
    }
}

/// Puts down what a request tells.
fn tell(exchange: ExchangeId, request: &Message, exchanges: &mut Exchanges) {
    let wants_rows = exchanges.wants_rows();
    if let Some(begun) = exchanges.get_mut(exchange) {
        begun.payload_bytes += u64::from(request.payload_bytes);
        if wants_rows {
            begun.resource = request.uri_path.get().unwrap_or("").to_owned();
        }
    }
}

/// Puts down what a response tells.
fn answer(exchange: ExchangeId, response: &Message, exchanges: &mut Exchanges) {
    let wants_rows = exchanges.wants_rows();
    if let Some(answered) = exchanges.get_mut(exchange) {
        answered.payload_bytes += u64::from(response.payload_bytes);
        if wants_rows {
            answered.result = response.variant.to_owned();
        }
    }
}
