//! Notifications and the registrations that they are sent for (RFC 7641).

use super::codes::is_success;
use super::sender::{add_data, alone, tell_result, Manner, Request, Sender};
use super::transfers::is_later_block;
use crate::exchanges::{Acknowledgement, ExchangeId, Exchanges, Moment, Placement};
use crate::message::{Message, Side};

/// RFC 7641 §3.4: a notification so much later is fresh whatever its value.
const FRESH_AFTER_NS: i64 = 128_000_000_000;
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
        let exchange = exchanges.open("notification", message, from, at);
        let is_fresh = is_fresh(message, request, at);
        if let Some(notification) = exchanges.get_mut(exchange) {
            notification.parent = Some(request.exchange.number);
        }
        if let (true, Some((_, before_ns))) = (is_fresh, request.freshest) {
            exchanges.interval(exchange, at.time_ns - before_ns);
        }
        if is_fresh {
            let found = self.requests.values_mut().chain(&mut self.anonymous).find(|open| open.exchange == request.exchange);
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
        Placement { is_data, acknowledgement, ..alone(exchange) }
    }

    /// The number of a request, where it is a registration.
    #[inline]
    pub(super) fn registration_number(&mut self, is_observe: bool) -> u16 {
        self.registrations = self.registrations.wrapping_add(is_observe.into());
        self.registrations
    }

    /// Ends the registration with this number (RFC 7641 §3.6).
    pub(super) fn cancel(&mut self, registration: u16, exchanges: &mut Exchanges) {
        let is_it = |request: &&Request| request.is_observe && request.registration == registration;
        let found = self.requests.values().chain(&self.anonymous).find(is_it);
        let Some(exchange) = found.map(|request| request.exchange) else { return };
        self.close(exchange, "cancelled", exchanges);
        self.remove(exchange);
    }

    /// The registration that a request with the same token and resource renews (RFC 7641 §3.3.1), or of which it asks for a later block. For the
    /// latter a token of its own is due (RFC 7959 §3.4), with which it is a request like others.
    pub(super) fn registration(&self, message: &Message) -> Option<ExchangeId> {
        if message.observe != Some(0) && !is_later_block(message) {
            return None;
        }
        let request = self.requests.get(&message.token)?;
        (request.is_registered() && request.subject == message.subject_hash).then_some(request.exchange)
    }
}

/// Whether a notification is newer than those before (RFC 7641 §3.4). So is the last one, which has no value (§3.2), and all over a reliable
/// transport, where the value means nothing (RFC 8323 §7.1).
fn is_fresh(message: &Message, request: &Request, at: &Moment) -> bool {
    let (Some((before, before_ns)), Some(value)) = (request.freshest, message.observe) else { return true };
    message.message_id.is_none()
        || at.time_ns > before_ns + FRESH_AFTER_NS
        || (before < value && value - before < HALF_OF_OBSERVE)
        || (before > value && before - value > HALF_OF_OBSERVE)
}
