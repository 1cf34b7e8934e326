//! A handshake of (D)TLS as one exchange of the kind "handshake"; all other records stand alone.
//!
//! It opens with the first ClientHello, whose repetitions after HelloVerifyRequest and HelloRetryRequest belong to it. The acknowledgement is the
//! ServerHello. The response is its last message:
//! - up to (D)TLS 1.2 the second Finished, that is the first encrypted handshake record behind the second side's ChangeCipherSpec;
//! - in (D)TLS 1.3, where the Finished cannot be told from other records, the last record that the decoder takes for the handshake before the first
//!   that it does not (or before the conversation's end), once both sides have sent such a record.
//!
//! Parts are flights (RFC 9147 §5.7): handshake messages of one side until the other's, repetitions left out, and ChangeCipherSpec, which in TLS 1.3
//! comes at any time and means nothing (RFC 8446 §5). The result is the cipher suite. A fatal
//! alert before the end makes the outcome "reset", a further ClientHello "superseded"; application data behind a ServerHello shows that the handshake
//! was completed even where its end was not seen. Up to TLS 1.2 renegotiation is visible as encrypted handshake records behind a completed handshake: another
//! exchange, in which the server's first record stands for its ServerHello. TLS 1.3 has none (RFC 8446 §4.6): tickets and KeyUpdate begin nothing.

use super::names::{APPLICATION_DATA, ENCRYPTED, HELLO_RETRY_REQUEST};
use crate::exchanges::{ExchangeId, Exchanges, Moment, Placement};
use crate::message::{Message, Side};
use crate::protocols::Pairing;

/// Pairs the handshakes of one conversation.
#[derive(Debug, Default)]
pub struct HandshakePairing {
    open: Option<Handshake>,
    is_established: bool,
}

#[derive(Debug)]
struct Handshake {
    id: ExchangeId,
    last_from: Side,
    last: Moment,
    flights: u32,
    is_answered: bool,
    is_changed: [bool; 2],
    is_finished: [bool; 2],
    is_complete: bool,
}

impl Pairing for HandshakePairing {
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        if !message.facts.is_handshake || message.kind == "Alert" {
            return self.other(message, at, exchanges);
        }
        let id = if message.is_retransmission { self.repeat(message, at, exchanges) } else { self.handshake(message, from, at, exchanges) };
        Placement { exchange: id, is_retransmission: message.is_retransmission, ..Placement::default() }
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        self.close("open", exchanges);
    }
}

impl HandshakePairing {
    /// A record that does not carry a handshake on.
    #[inline]
    fn other(&mut self, message: &Message, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let mut placement = Placement { is_retransmission: message.is_retransmission, ..Placement::default() };
        let Some(open) = &self.open else { return placement };
        let is_fatal = message.alert.get().is_some_and(|alert| alert.starts_with("fatal"));
        if is_fatal && !open.is_over() {
            placement.exchange = Some(open.id);
            exchanges.join(open.id, message, at);
            exchanges.end(open.id, "reset");
            self.close("reset", exchanges);
        } else if open.is_answered && message.kind == "Application Data" {
            self.close("complete", exchanges);
        }
        placement
    }

    fn repeat(&self, message: &Message, at: &Moment, exchanges: &mut Exchanges) -> Option<ExchangeId> {
        let open = self.open.as_ref()?;
        let is_opening = open.flights == 1 && message.variant == "Client Hello";
        exchanges.repeat(open.id, message, at, is_opening);
        Some(open.id)
    }

    fn handshake(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Option<ExchangeId> {
        if self.begins(message) {
            self.close("superseded", exchanges);
            self.open = Some(Handshake::begin(message, from, at, exchanges));
        } else if let Some(open) = &mut self.open {
            open.join(message, from, at, exchanges);
        }
        let open = self.open.as_mut()?;
        open.follow(message, from, at, exchanges);
        self.is_established |= open.is_complete;
        Some(open.id)
    }

    fn begins(&self, message: &Message) -> bool {
        if message.variant == "Client Hello" {
            return self.open.as_ref().is_none_or(|open| open.is_answered);
        }
        let is_over = self.open.as_ref().is_none_or(|open| open.is_complete);
        is_over && self.is_established && message.variant == ENCRYPTED && message.facts.is_of_flight
    }

    /// Lets go of the handshake. One that was not over ends as what its messages show, else as `otherwise`.
    fn close(&mut self, otherwise: &'static str, exchanges: &mut Exchanges) {
        let Some(open) = self.open.take() else { return };
        let is_finished = open.is_over();
        if is_finished {
            exchanges.respond(open.id, &open.last);
        }
        let outcome = match otherwise {
            _ if is_finished => "complete",
            "open" if !open.is_answered => "unanswered",
            _ => otherwise,
        };
        self.is_established |= outcome == "complete";
        exchanges.end(open.id, outcome);
        exchanges.forget(open.id);
    }
}

impl Handshake {
    fn begin(message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Self {
        let id = exchanges.open("handshake", message, from, at);
        Self {
            id,
            last_from: from,
            last: *at,
            flights: 1,
            is_answered: false,
            is_changed: [false; 2],
            is_finished: [false; 2],
            is_complete: false,
        }
    }

    /// Whether both sides have sent their last messages, as far as visible.
    fn is_over(&self) -> bool {
        self.is_finished == [true; 2]
    }

    fn join(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) {
        exchanges.join(self.id, message, at);
        if !message.facts.is_of_flight {
            return;
        }
        self.last = *at;
        if from != self.last_from {
            self.last_from = from;
            self.flights += 1;
        }
    }

    /// What a message means for the handshake's course.
    fn follow(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) {
        if let Some(exchange) = exchanges.get_mut(self.id) {
            exchange.parts = Some(self.flights);
            if let Some(suite) = message.cipher_suite.get().filter(|_| message.variant != HELLO_RETRY_REQUEST) {
                exchange.result.clear();
                exchange.result.push_str(suite);
            }
        }
        let is_encrypted = message.variant == ENCRYPTED;
        if message.variant == "Server Hello" || (is_encrypted && from == Side::Server && !self.is_answered) {
            self.is_answered = true;
            exchanges.acknowledge(self.id, at);
        }
        if message.kind == "Change Cipher Spec" {
            mark(&mut self.is_changed, from);
        } else if is_encrypted {
            self.finish(message, from, at, exchanges);
        }
    }

    fn finish(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) {
        let is_hidden = message.content_type.is_none_or(|kind| kind == APPLICATION_DATA);
        let has_changed = self.is_changed.get(from.index()) == Some(&true);
        if is_hidden || has_changed {
            mark(&mut self.is_finished, from);
        }
        if self.is_over() && !is_hidden && !self.is_complete {
            self.is_complete = true;
            exchanges.respond(self.id, at);
            exchanges.end(self.id, "complete");
        }
    }
}

fn mark(sides: &mut [bool; 2], side: Side) {
    if let Some(mark) = sides.get_mut(side.index()) {
        *mark = true;
    }
}
