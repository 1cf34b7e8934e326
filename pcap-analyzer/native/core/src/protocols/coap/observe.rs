//! Notifications and the registrations that they are sent for (RFC 7641).

use super::codes::is_success;
use super::ids::Sent;
use super::sender::{add_data, tell_result, Manner, Request, Sender};
use super::transfers::is_later_block;
use crate::exchanges::{Acknowledgement, ExchangeId, Exchanges, Moment, Placement};
use crate::message::{Message, Side, Token};

/// RFC 7641 §3.4: a notification so much later is fresh whatever its value.
const FRESH_AFTER_NS: i64 = 128_000_000_000;
/// Tokens of registrations that are remembered.
const MOST_REGISTERED: usize = 1 << 12;
/// RFC 7641 §3.4: half of the 24-bit values.
const HALF_OF_OBSERVE: u32 = 1 << 23;

impl Sender {
    /// A further response to a registration (RFC 7641 §3.2).
    pub(super) fn notification(
        &mut self,
        message: &Message,
        request: &Request,
        from: Side,
        at: &Moment,
        exchanges: &mut Exchanges,
    ) -> Placement {
        let parent = exchanges.get(request.exchange).map(|registration| registration.number);
        let exchange = exchanges.open("notification", message, from, at);
        let is_fresh = is_fresh(message, request, at);
        if let Some(notification) = exchanges.get_mut(exchange) {
            notification.parent = parent;
        }
        if let (true, Some((_, before_ns))) = (is_fresh, request.freshest) {
            exchanges.interval(exchange, at.time_ns - before_ns);
        }
        if is_fresh {
            let found = self.open_mut(message.token, request.exchange);
            if let (Some(open), Some(value)) = (found, message.observe) {
                open.freshest = Some((value, at.time_ns));
            }
        }
        tell_result(exchange, message, exchanges);
        let is_data = message.payload_bytes > 0 && is_success(message) && is_fresh;
        add_data(exchange, message, is_data, exchanges);
        let manner = Manner::of(message);
        if manner != Manner::Confirmable {
            manner.finish(exchange, "complete", exchanges);
        }
        if message.observe.is_none() {
            self.cancel(request.registration, exchanges);
        }
        let acknowledgement = if is_data && manner == Manner::Confirmable { Acknowledgement::Expected } else { Acknowledgement::None };
        Placement { is_data, acknowledgement, ..Placement::of(exchange) }
    }

    /// The registration that a notification (RFC 7641 §3.2: a response with Observe option) is sent for, where that is not in the capture: nothing is
    /// known of its token.
    pub(super) fn registered_before(&mut self, message: &Message, at: &Moment) -> Option<Request> {
        let is_known = self.registered.contains(&message.token) || (message.token.is_empty() && !self.anonymous.is_empty());
        if message.observe.is_none() || is_known {
            return None;
        }
        self.register(message.token);
        self.registrations = self.registrations.wrapping_add(1);
        let request = Request::before_capture(self.registrations, at.time_ns);
        if message.token.is_empty() {
            self.anonymous.insert(request.exchange, request);
        } else {
            self.requests.insert(message.token, request);
        }
        Some(request)
    }

    /// Remembers the token of a registration; of very many those before are forgotten.
    pub(super) fn register(&mut self, token: Token) {
        if self.registered.len() >= MOST_REGISTERED {
            self.registered.clear();
        }
        self.registered.insert(token);
    }

    /// Numbers a registration. One that renews another (RFC 7641 §3.3.1) goes on with its number and its freshest notification.
    pub(super) fn number(&mut self, token: Token, request: &mut Request) {
        let renewed = match token.is_empty() {
            true => self.anonymous.values().find(|open| request.renews(open)),
            false => self.requests.get(&token).filter(|open| request.renews(open)),
        };
        (request.registration, request.freshest) = match renewed {
            Some(renewed) => (renewed.registration, renewed.freshest),
            None => {
                self.registrations = self.registrations.wrapping_add(1);
                (self.registrations, None)
            }
        };
    }

    /// Ends the registration with this number (RFC 7641 §3.6).
    pub(super) fn cancel(&mut self, registration: u16, exchanges: &mut Exchanges) {
        let is_it = |request: &&Request| request.is_observe && request.registration == registration;
        let found = self.requests.values().chain(self.anonymous.values()).find(is_it);
        let Some(exchange) = found.map(|request| request.exchange) else { return };
        self.close(exchange, "cancelled", exchanges);
        self.remove(exchange);
    }

    /// The registration with whose token a request asks for a later block of what is observed. A token of its own is due for that (RFC 7959
    /// §3.4), with which it is a request like others.
    #[inline]
    pub(super) fn observed(&self, message: &Message) -> Option<ExchangeId> {
        if !is_later_block(message) {
            return None;
        }
        let request = self.requests.get(&message.token)?;
        (request.is_registered() && request.subject == message.subject_hash).then_some(request.exchange)
    }
}

impl Request {
    /// Whether notifications may come for it.
    pub(super) const fn is_registered(&self) -> bool {
        self.is_observe && self.is_answered
    }

    /// Whether it renews the registration `old` (RFC 7641 §3.3.1): the client asks again what it observes, with the same token.
    pub(super) fn renews(&self, old: &Self) -> bool {
        old.is_observe && old.freshest.is_some() && self.is_observe && old.subject == self.subject && old.exchange != self.exchange
    }

    /// Whether a response to it is a notification. As long as one that renews a registration has got neither ACK nor answer, notifications may
    /// still come that were sent before.
    #[inline]
    pub(super) fn is_notified(&self, message: &Message, asked: Option<&Sent>, exchanges: &Exchanges) -> bool {
        if !self.is_observe || is_later_block(message) {
            return false;
        }
        self.is_answered || (self.freshest.is_some() && asked.is_none() && self.is_on_the_way(exchanges))
    }

    fn is_on_the_way(&self, exchanges: &Exchanges) -> bool {
        self.manner == Manner::Confirmable && exchanges.get(self.exchange).is_some_and(|exchange| exchange.ack_rtt_ns.is_none())
    }
}

/// Whether a notification is newer than those before (RFC 7641 §3.4). So is the last one, which has no value (§3.2), and all over a reliable
/// transport, where the value means nothing (RFC 8323 §7.1).
fn is_fresh(message: &Message, request: &Request, at: &Moment) -> bool {
    let (Some((before, before_ns)), Some(value)) = (request.freshest, message.observe) else { return true };
    message.message_id.is_none()
        || at.time_ns > before_ns.saturating_add(FRESH_AFTER_NS)
        || (before < value && value - before < HALF_OF_OBSERVE)
        || (before > value && before - value > HALF_OF_OBSERVE)
}
