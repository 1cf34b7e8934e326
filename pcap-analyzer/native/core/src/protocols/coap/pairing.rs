//! Which CoAP messages belong together: requests with their responses (RFC 7252 §5.3), messages with their acknowledgements (§4), notifications
//! with their registration (RFC 7641), blocks with their transfer (RFC 7959).
//!
//! Both sides may ask and answer. Times: `ack_rtt` ends at the ACK, or at the response where that comes first and so confirms the request
//! (§4.2); `rtt` at the response, of a block-wise transfer at the last one. A repeated message gives no second sample and carries no data.

use super::codes::{code_of, is_signal, is_success};
use super::ids::{Ids, Part, Role, Sent};
use super::is_request;
use super::sender::{add_data, finish, tell_result, Manner, Request, Sender};
use crate::exchanges::{Acknowledgement, Exchanges, Moment, Placement};
use crate::message::{Message, Side};
use crate::protocols::Pairing;
use rustc_hash::FxHashMap;

/// A conversation of two endpoints, or of one with a group.
#[derive(Debug, Default)]
pub struct Talk {
    senders: [Sender; 2],
    /// The IDs of messages from and to a group's members, by member: each endpoint has its own (§4.4).
    members: Option<Box<FxHashMap<u16, [Ids; 2]>>>,
}

impl Pairing for Talk {
    #[inline]
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        match message.kind {
            "ACK" | "RST" => self.answer_to_id(message, from, at, exchanges),
            "CON" | "NON" => {
                if let Some(placement) = self.repeated(message, from, at, exchanges) {
                    return placement;
                }
                let (placement, part) = self.new_message(message, from, at, exchanges);
                self.remember(message, from, at, &placement, part, exchanges);
                placement
            }
            "Request" | "Response" => self.new_message(message, from, at, exchanges).0,
            _ => Placement::default(),
        }
    }

    /// As a rule the client asks.
    fn touch(&self, _from: Side) -> u64 {
        let [client, server] = &self.senders;
        client.touch() ^ server.ids.touch()
    }

    fn touch_lists(&self) -> u64 {
        self.senders.iter().map(|sender| sender.ids.touch_last()).sum()
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        for sender in &mut self.senders {
            sender.end(exchanges);
        }
    }
}

impl Talk {
    fn sender(&mut self, side: Side) -> &mut Sender {
        of(&mut self.senders, side)
    }

    /// The IDs that a side has used for messages from or to a member of a group, or else its only ones.
    #[inline]
    fn ids(&mut self, side: Side, member: u16) -> &mut Ids {
        match member {
            0 => &mut self.sender(side).ids,
            _ => self.ids_of_member(side, member),
        }
    }

    #[cold]
    fn ids_of_member(&mut self, side: Side, member: u16) -> &mut Ids {
        of(self.members.get_or_insert_default().entry(member).or_default(), side)
    }

    /// The message that an ACK or RST answers. Of a member it may be the group's request, although such a one asks for neither (§8.1).
    #[inline]
    fn answered(&mut self, id: u16, sender: Side, at: &Moment) -> Option<&mut Sent> {
        let is_group_s = at.member > 0 && self.ids(sender, at.member).get(id).is_none();
        let member = if is_group_s { 0 } else { at.member };
        self.ids(sender, member).get_mut(id).filter(|sent| sent.is_alive(at.time_ns))
    }

    /// A message ID seen within its lifetime: the message was sent again (§4.5).
    #[inline]
    fn repeated(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Option<Placement> {
        let sent = self.ids(from, at.member).get(message.message_id?)?;
        if !sent.is_alive(at.time_ns) || Some(sent.code) != code_of(message) {
            return None;
        }
        if sent.role == Role::Unmatched {
            return Some(Placement { is_retransmission: true, ..Placement::default() });
        }
        exchanges.repeat(sent.exchange, message, at, sent.role != Role::Response);
        Some(Placement { is_retransmission: true, ..Placement::of(sent.exchange) })
    }

    #[inline]
    fn remember(&mut self, message: &Message, from: Side, at: &Moment, placement: &Placement, part: Part, exchanges: &mut Exchanges) {
        let Some(id) = message.message_id else { return };
        let sent = Sent {
            id,
            time_ns: at.time_ns,
            exchange: placement.exchange.unwrap_or_default(),
            code: code_of(message).unwrap_or(0),
            registration: part.registration,
            role: if placement.exchange.is_some() { part.role } else { Role::Unmatched },
            is_con: message.kind == "CON",
            is_acknowledged: false,
        };
        self.keep(sent, from, at, exchanges);
    }

    /// Remembers a message's ID, and lets go of those that are forgotten.
    #[inline]
    fn keep(&mut self, sent: Sent, from: Side, at: &Moment, exchanges: &mut Exchanges) {
        let ids = self.ids(from, at.member);
        let (before, old) = (ids.insert(sent), ids.sweep(at.time_ns));
        if let Some(sent) = before {
            self.sender(from).let_go_soon(sent, at.time_ns, exchanges);
        }
        if let Some(old) = old {
            self.sender(from).let_go_of(old, at.time_ns, exchanges);
        }
    }

    /// ACK and RST carry the ID of the message that they answer (§4.2, §4.3).
    #[inline]
    fn answer_to_id(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let Some(id) = message.message_id else { return Placement::default() };
        let peer = from.peer();
        let Some(sent) = self.answered(id, peer, at) else { return self.answer_to_nothing(id, message, peer, at, exchanges) };
        let was_acknowledged = std::mem::replace(&mut sent.is_acknowledged, true);
        let sent = *sent;
        if sent.role == Role::Unmatched {
            return Placement { is_retransmission: was_acknowledged, ..Placement::default() };
        }
        if was_acknowledged {
            exchanges.repeat(sent.exchange, message, at, false);
            return Placement { is_retransmission: true, ..Placement::of(sent.exchange) };
        }
        match (message.kind, code_of(message)) {
            ("RST", _) => self.reset(message, &sent, peer, at, exchanges),
            (_, Some(0) | None) => acknowledged(message, &sent, at, exchanges),
            _ => self.response(message, from, Some(&sent), at, exchanges).0,
        }
    }

    /// An ACK or RST of a message that is not in the capture. A response on it may bring data, once.
    #[cold]
    fn answer_to_nothing(&mut self, id: u16, message: &Message, peer: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let placement = self.sender(peer).unmatched(message);
        if placement.is_data {
            let asked = Sent { id, time_ns: at.time_ns, role: Role::Unmatched, is_con: true, is_acknowledged: true, ..Sent::default() };
            self.keep(asked, peer, at, exchanges);
        }
        Placement { is_unmatched: true, ..placement }
    }

    fn reset(&mut self, message: &Message, sent: &Sent, sender: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        exchanges.join(sent.exchange, message, at);
        match sent.role {
            Role::Ping => {
                exchanges.respond(sent.exchange, at);
                finish(sent.exchange, "complete", exchanges);
            }
            Role::Notification => {
                finish(sent.exchange, "reset", exchanges);
                self.sender(sender.peer()).cancel(sent.registration, exchanges);
            }
            Role::Response => {
                finish(sent.exchange, "reset", exchanges);
                self.sender(sender.peer()).remove(sent.exchange);
            }
            _ => {
                finish(sent.exchange, "reset", exchanges);
                self.sender(sender).remove(sent.exchange);
            }
        }
        Placement::of(sent.exchange)
    }

    /// A message that is not a repetition, an ACK or a RST.
    #[inline]
    fn new_message(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> (Placement, Part) {
        match code_of(message) {
            Some(code) if is_request(code) => (self.request(message, from, at, exchanges), Role::Request.into()),
            Some(0) => (Placement::of(exchanges.open("ping", message, from, at)), Role::Ping.into()),
            // signals answer no request
            Some(code) if is_signal(code) => (Placement::default(), Part::default()),
            _ => self.response(message, from, None, at, exchanges),
        }
    }

    #[inline]
    fn request(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let sender = self.sender(from);
        let continued = sender.continued(message);
        let exchange = match continued.or_else(|| sender.observed(message)) {
            Some(exchange) => {
                exchanges.join(exchange, message, at);
                exchange
            }
            None => sender.begin(message, from, at, exchanges),
        };
        let manner = Manner::of(message);
        sender.open(message, Request::new(exchange, message, at), exchanges);
        sender.transfers.follow(message, exchange, true);
        let is_data = message.payload_bytes > 0;
        add_data(exchange, message, is_data, exchanges);
        let acknowledgement = if is_data && manner == Manner::Confirmable { Acknowledgement::Expected } else { Acknowledgement::None };
        Placement { is_data, acknowledgement, ..Placement::of(exchange) }
    }

    /// A response, piggybacked on the ACK of the request that was `asked`, or separate, or a notification.
    #[inline]
    fn response(
        &mut self,
        message: &Message,
        from: Side,
        asked: Option<&Sent>,
        at: &Moment,
        exchanges: &mut Exchanges,
    ) -> (Placement, Part) {
        let requester = self.sender(from.peer());
        let found = requester.find(message, asked, exchanges);
        let found = found.or_else(|| if asked.is_none() { requester.registered_before(message, at) } else { None });
        let Some(request) = found else {
            let Some(sent) = asked else { return (requester.unmatched(message), Role::Response.into()) };
            exchanges.join(sent.exchange, message, at);
            return (Placement::of(sent.exchange), Role::Response.into());
        };
        if request.is_notified(message, asked, exchanges) {
            let part = Part { role: Role::Notification, registration: request.registration };
            return (requester.notification(message, &request, from, at, exchanges), part);
        }
        let exchange = request.exchange;
        exchanges.join(exchange, message, at);
        tell_result(exchange, message, exchanges);
        let is_data = message.payload_bytes > 0 && is_success(message);
        add_data(exchange, message, is_data, exchanges);
        if !request.is_registered() {
            requester.answered(message, &request, at, exchanges);
        }
        let acknowledgement = match message.kind {
            "CON" if is_data => Acknowledgement::Expected,
            "ACK" => Acknowledgement::Given,
            _ => Acknowledgement::None,
        };
        (Placement { is_data, acknowledgement, ..Placement::of(exchange) }, Role::Response.into())
    }
}

/// What belongs to a side.
#[inline]
const fn of<T>(both: &mut [T; 2], side: Side) -> &mut T {
    let [client, server] = both;
    match side {
        Side::Client => client,
        Side::Server => server,
    }
}

/// An empty ACK (§4.2): of a request it tells that the response will be separate; of a response or notification that the data arrived.
fn acknowledged(message: &Message, sent: &Sent, at: &Moment, exchanges: &mut Exchanges) -> Placement {
    exchanges.join(sent.exchange, message, at);
    if sent.role != Role::Response {
        exchanges.acknowledge(sent.exchange, at);
    }
    if sent.role == Role::Notification {
        finish(sent.exchange, "complete", exchanges);
    }
    Placement { acknowledgement: Acknowledgement::Given, ..Placement::of(sent.exchange) }
}
