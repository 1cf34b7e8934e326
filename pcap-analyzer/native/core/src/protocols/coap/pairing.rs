//! Which CoAP messages belong together: requests with their responses (RFC 7252 §5.3), messages with their acknowledgements (§4), notifications
//! with their registration (RFC 7641), blocks with their transfer (RFC 7959).
//!
//! Both sides may ask and answer. Times: `ack_rtt` ends at the ACK, or at the response where that comes first and so confirms the request
//! (§4.2); `rtt` at the response, of a block-wise transfer at the last one. A repeated message gives no second sample and carries no data.

use super::ids::Ids;
use super::is_request;
use crate::exchanges::{Acknowledgement, ExchangeId, Exchanges, Moment, Placement};
use crate::few::Few;
use crate::message::{Message, Side, Token};
use crate::protocols::Pairing;

/// RFC 7252 §4.8.2, with the default transmission parameters of §4.8.
const EXCHANGE_LIFETIME_NS: i64 = 247_000_000_000;
/// RFC 7252 §4.8.2.
const NON_LIFETIME_NS: i64 = 145_000_000_000;
/// RFC 7641 §3.4: a notification so much later is fresh whatever its value.
const FRESH_AFTER_NS: i64 = 128_000_000_000;
/// RFC 7641 §3.4: half of the 24-bit values.
const HALF_OF_OBSERVE: u32 = 1 << 23;
/// Message IDs remembered before the first look for old ones.
const FIRST_SWEEP: usize = 64;

/// What a message was, whose ID is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Role {
    Request,
    Response,
    Notification,
    Ping,
    #[default]
    Unmatched,
}

/// A message whose ID is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sent {
    pub(super) id: u16,
    pub(super) time_ns: i64,
    pub(super) exchange: ExchangeId,
    pub(super) code: u8,
    pub(super) role: Role,
    pub(super) is_con: bool,
    pub(super) is_acknowledged: bool,
}

impl Sent {
    const fn is_alive(&self, now_ns: i64) -> bool {
        now_ns - self.time_ns < if self.is_con { EXCHANGE_LIFETIME_NS } else { NON_LIFETIME_NS }
    }
}

/// A request that may get (more) responses.
#[derive(Debug, Clone, Copy)]
struct Request {
    exchange: ExchangeId,
    time_ns: i64,
    subject: u64,
    is_con: bool,
    is_observe: bool,
    is_answered: bool,
    /// Observe value and time of the freshest notification.
    freshest: Option<(u32, i64)>,
}

/// A block-wise transfer under way.
#[derive(Debug, Clone, Copy)]
struct Transfer {
    exchange: ExchangeId,
    subject: u64,
    tag: u64,
    token: Token,
    /// Offset at which the next block begins.
    next: u64,
    is_block1: bool,
}

/// What one side has sent.
#[derive(Debug, Default)]
struct Sender {
    ids: Ids,
    sweep_at: usize,
    /// Two in place: who observes often asks too.
    requests: Few<Token, Request, 2>,
    /// Requests with the empty token, of which several can be open.
    anonymous: Vec<Request>,
    transfers: Vec<Transfer>,
    /// Time of the last request for a resource.
    polled: Few<u64, i64>,
}

/// A conversation of two endpoints.
#[derive(Debug, Default)]
pub struct Talk {
    senders: [Sender; 2],
}

const fn alone(exchange: ExchangeId) -> Placement {
    Placement { exchange: Some(exchange), is_data: false, is_retransmission: false, acknowledgement: Acknowledgement::None }
}

/// The code that the application means: the inner message's, where OSCORE's was opened.
fn code_of(message: &Message) -> Option<u8> {
    message.inner_code.or(message.code)
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
                let (placement, role) = self.new_message(message, from, at, exchanges);
                self.remember(message, from, at, &placement, role, exchanges);
                placement
            }
            "Request" | "Response" | "Ping" | "Pong" => self.new_message(message, from, at, exchanges).0,
            _ => Placement::default(),
        }
    }

    fn touch(&self, from: Side) -> bool {
        self.senders.get(from.index()).is_some_and(|sender| sender.ids.touch())
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        for sender in &mut self.senders {
            let mut open: Vec<Request> = sender.requests.take_all().chain(sender.anonymous.drain(..)).collect();
            open.sort_unstable_by_key(|request| request.exchange);
            for request in open {
                if !request.is_answered {
                    exchanges.end(request.exchange, "unanswered");
                }
            }
        }
    }
}

impl Talk {
    fn sender(&mut self, side: Side) -> &mut Sender {
        let [client, server] = &mut self.senders;
        match side {
            Side::Client => client,
            Side::Server => server,
        }
    }

    /// A message ID seen within its lifetime: the message was sent again (§4.5).
    #[inline]
    fn repeated(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Option<Placement> {
        let sent = self.sender(from).ids.get(message.message_id?)?;
        if !sent.is_alive(at.time_ns) || Some(sent.code) != code_of(message) {
            return None;
        }
        exchanges.repeat(sent.exchange, message, at, matches!(sent.role, Role::Request | Role::Notification | Role::Ping));
        Some(Placement { is_retransmission: true, ..alone(sent.exchange) })
    }

    #[inline]
    fn remember(&mut self, message: &Message, from: Side, at: &Moment, placement: &Placement, role: Role, exchanges: &mut Exchanges) {
        let Some(id) = message.message_id else { return };
        let sent = Sent {
            id,
            time_ns: at.time_ns,
            exchange: placement.exchange.unwrap_or_default(),
            code: code_of(message).unwrap_or(0),
            role: if placement.exchange.is_some() { role } else { Role::Unmatched },
            is_con: message.kind == "CON",
            is_acknowledged: false,
        };
        let sender = self.sender(from);
        if let Some(old) = sender.ids.insert(sent) {
            sender.let_go(&old, exchanges);
        }
        if sender.ids.len() >= sender.sweep_at.max(FIRST_SWEEP) {
            sender.sweep(at.time_ns, exchanges);
        }
    }

    /// ACK and RST carry the ID of the message that they answer (§4.2, §4.3).
    #[inline]
    fn answer_to_id(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let Some(id) = message.message_id else { return Placement::default() };
        let peer = from.peer();
        let Some(sent) = self.sender(peer).ids.get_mut(id).filter(|sent| sent.is_alive(at.time_ns)) else {
            return Placement::default();
        };
        let was_acknowledged = std::mem::replace(&mut sent.is_acknowledged, true);
        let sent = *sent;
        if sent.role == Role::Unmatched {
            return Placement::default();
        }
        if was_acknowledged {
            exchanges.repeat(sent.exchange, message, at, false);
            return Placement { is_retransmission: true, ..alone(sent.exchange) };
        }
        match (message.kind, code_of(message)) {
            ("RST", _) => self.reset(message, &sent, peer, at, exchanges),
            (_, Some(0) | None) => acknowledged(message, &sent, at, exchanges),
            _ => self.response(message, from, Some(sent.exchange), at, exchanges).0,
        }
    }

    fn reset(&mut self, message: &Message, sent: &Sent, sender: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        exchanges.join(sent.exchange, message, at);
        match sent.role {
            Role::Ping => {
                exchanges.respond(sent.exchange, at);
                finish(sent.exchange, "complete", exchanges);
            }
            Role::Notification => {
                let registration = exchanges.get(sent.exchange).and_then(|exchange| exchange.parent);
                finish(sent.exchange, "reset", exchanges);
                self.sender(sender.peer()).cancel(registration, exchanges);
            }
            _ => {
                finish(sent.exchange, "reset", exchanges);
                self.sender(sender).remove(sent.exchange);
            }
        }
        alone(sent.exchange)
    }

    /// A message that is not a repetition, an ACK or a RST.
    #[inline]
    fn new_message(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> (Placement, Role) {
        match code_of(message) {
            Some(code) if is_request(code) => (self.request(message, from, at, exchanges), Role::Request),
            Some(0 | 226) => (alone(exchanges.open("ping", message, from, at)), Role::Ping),
            _ => self.response(message, from, None, at, exchanges),
        }
    }

    #[inline]
    fn request(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let sender = self.sender(from);
        let continued = sender.continued(message);
        let exchange = match continued.or_else(|| sender.registered_again(message)) {
            Some(exchange) => {
                exchanges.join(exchange, message, at);
                exchange
            }
            None => sender.begin(message, from, at, exchanges),
        };
        let is_con = message.kind == "CON";
        let is_observe = message.observe == Some(0);
        let freshest =
            sender.requests.get(&message.token).filter(|request| request.exchange == exchange).and_then(|request| request.freshest);
        let (time_ns, subject) = (at.time_ns, message.subject_hash);
        let request = Request { exchange, time_ns, subject, is_con, is_observe, is_answered: freshest.is_some(), freshest };
        sender.open(message, request, exchanges);
        sender.follow_blocks(message, exchange, true);
        let is_data = message.payload_bytes > 0;
        add_data(exchange, message, is_data, exchanges);
        let acknowledgement = if is_data && is_con { Acknowledgement::Expected } else { Acknowledgement::None };
        Placement { is_data, acknowledgement, ..alone(exchange) }
    }

    /// A response, piggybacked on the ACK of the request in `exchange`, or separate, or a notification.
    #[inline]
    fn response(
        &mut self,
        message: &Message,
        from: Side,
        piggybacked: Option<ExchangeId>,
        at: &Moment,
        exchanges: &mut Exchanges,
    ) -> (Placement, Role) {
        let requester = self.sender(from.peer());
        let Some(request) = requester.find(message, piggybacked, exchanges) else {
            let exchange = piggybacked;
            if let Some(exchange) = exchange {
                exchanges.join(exchange, message, at);
            }
            return (Placement { exchange, ..Placement::default() }, Role::Response);
        };
        if request.is_answered && request.is_observe {
            return (requester.notification(message, &request, from, at, exchanges), Role::Notification);
        }
        let exchange = request.exchange;
        exchanges.join(exchange, message, at);
        if request.is_con {
            exchanges.acknowledge(exchange, at);
        }
        let is_last = !requester.follow_blocks(message, exchange, false) && code_of(message) != Some(95);
        requester.answered(message, &request, is_last, at, exchanges);
        if is_last {
            exchanges.respond(exchange, at);
            let stays = request.is_observe && message.observe.is_some();
            if !stays {
                finish(exchange, "complete", exchanges);
            }
        }
        tell_result(exchange, message, exchanges);
        let is_data = message.payload_bytes > 0 && is_success(message);
        add_data(exchange, message, is_data, exchanges);
        let acknowledgement = match message.kind {
            "CON" if is_data => Acknowledgement::Expected,
            "ACK" => Acknowledgement::Given,
            _ => Acknowledgement::None,
        };
        (Placement { is_data, acknowledgement, ..alone(exchange) }, Role::Response)
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
    Placement { acknowledgement: Acknowledgement::Given, ..alone(sent.exchange) }
}

/// Ends an exchange; where nobody wants its row, nothing needs to be kept of it.
fn finish(exchange: ExchangeId, outcome: &'static str, exchanges: &mut Exchanges) {
    exchanges.end(exchange, outcome);
    if !exchanges.wants_rows() {
        exchanges.forget(exchange);
    }
}

fn is_success(message: &Message) -> bool {
    code_of(message).is_some_and(|code| code >> 5 == 2)
}

fn add_data(exchange: ExchangeId, message: &Message, is_data: bool, exchanges: &mut Exchanges) {
    if let Some(exchange) = exchanges.get_mut(exchange).filter(|_| is_data) {
        exchange.payload_bytes += u64::from(message.payload_bytes);
    }
}

fn tell_result(exchange: ExchangeId, message: &Message, exchanges: &mut Exchanges) {
    if !exchanges.wants_rows() {
        return;
    }
    if let Some(exchange) = exchanges.get_mut(exchange) {
        message.variant.clone_into(&mut exchange.result);
    }
}

/// Kinds of exchanges by method (code 1 to 7): plain, and block-wise.
const KINDS: [(&str, &str); 7] = [
    ("GET", "GET block-wise"),
    ("POST", "POST block-wise"),
    ("PUT", "PUT block-wise"),
    ("DELETE", "DELETE block-wise"),
    ("FETCH", "FETCH block-wise"),
    ("PATCH", "PATCH block-wise"),
    ("iPATCH", "iPATCH block-wise"),
];

fn kind(message: &Message) -> &'static str {
    if message.observe == Some(0) {
        return "observe";
    }
    let method = usize::from(code_of(message).unwrap_or(0)).wrapping_sub(1);
    KINDS.get(method).map_or("request", |(plain, _)| plain)
}

/// The block that a message carries on: offset of its end, and whether more follow.
fn block(message: &Message, is_block1: bool) -> Option<(u64, u64, bool)> {
    let row = &message.row;
    let (number, szx, more) =
        if is_block1 { (row.block1_num?, row.block1_szx?, row.block1_more?) } else { (row.block2_num?, row.block2_szx?, row.block2_more?) };
    let size = 16_u64 << szx.min(6);
    let offset = u64::from(number) * size;
    Some((offset, offset + size, more))
}

impl Sender {
    /// Forgets the IDs whose lifetime is over; amortised over the messages since the last time.
    fn sweep(&mut self, now_ns: i64, exchanges: &mut Exchanges) {
        let mut old: Vec<Sent> = Vec::new();
        self.ids.retain(|sent| {
            let is_alive = sent.is_alive(now_ns);
            if !is_alive {
                old.push(*sent);
            }
            is_alive
        });
        old.sort_unstable_by_key(|sent| sent.exchange);
        for sent in &old {
            self.let_go(sent, exchanges);
        }
        self.requests.retain(|request| request.is_observe || !request.is_answered || now_ns - request.time_ns < NON_LIFETIME_NS);
        self.sweep_at = self.ids.len() * 2;
    }

    /// Nothing can join the exchange of this message any more, unless it is a registration.
    fn let_go(&mut self, sent: &Sent, exchanges: &mut Exchanges) {
        match sent.role {
            Role::Request => {
                let open = self.requests.values().chain(&self.anonymous).find(|request| request.exchange == sent.exchange);
                match open {
                    Some(request) if request.is_observe => return,
                    Some(request) if !request.is_answered => {
                        exchanges.end(sent.exchange, "unanswered");
                        self.remove(sent.exchange);
                    }
                    _ => {}
                }
                exchanges.forget(sent.exchange);
            }
            Role::Notification => {
                exchanges.end(sent.exchange, if sent.is_con { "unanswered" } else { "complete" });
                exchanges.forget(sent.exchange);
            }
            Role::Ping => {
                exchanges.end(sent.exchange, "unanswered");
                exchanges.forget(sent.exchange);
            }
            Role::Response | Role::Unmatched => {}
        }
    }

    fn remove(&mut self, exchange: ExchangeId) {
        self.requests.retain(|request| request.exchange != exchange);
        self.anonymous.retain(|request| request.exchange != exchange);
        self.transfers.retain(|transfer| transfer.exchange != exchange);
    }

    /// Ends the registration with this number (RFC 7641 §3.6).
    fn cancel(&mut self, registration: Option<u64>, exchanges: &mut Exchanges) {
        let found = self.requests.values().chain(&self.anonymous).find(|request| Some(request.exchange.number) == registration);
        let Some(exchange) = found.map(|request| request.exchange) else { return };
        finish(exchange, "cancelled", exchanges);
        self.remove(exchange);
    }

    /// Begins an exchange with a request.
    #[inline]
    fn begin(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> ExchangeId {
        let exchange = exchanges.open(kind(message), message, from, at);
        if exchanges.wants_rows() {
            if let Some(begun) = exchanges.get_mut(exchange) {
                message.uri_path.get().unwrap_or("").clone_into(&mut begun.resource);
            }
        }
        if let Some(before_ns) = self.polled.insert(message.subject_hash, at.time_ns) {
            exchanges.interval(exchange, at.time_ns - before_ns);
        }
        exchange
    }

    /// Notes a request as open. One with the same token before it cannot be told apart from it any more (RFC 7252 §5.3.1).
    #[inline]
    fn open(&mut self, message: &Message, request: Request, exchanges: &mut Exchanges) {
        if message.token.is_empty() {
            self.anonymous.retain(|open| open.exchange != request.exchange && (!open.is_answered || open.is_observe));
            self.anonymous.push(request);
            return;
        }
        let Some(old) = self.requests.insert(message.token, request) else { return };
        if old.exchange == request.exchange {
            return;
        }
        if old.is_observe && message.observe == Some(1) {
            exchanges.end(old.exchange, "cancelled");
        } else if !old.is_answered {
            exchanges.end(old.exchange, "superseded");
        }
    }

    /// The registration that a request with the same token and resource renews (RFC 7641 §3.3.1).
    fn registered_again(&self, message: &Message) -> Option<ExchangeId> {
        if message.observe != Some(0) {
            return None;
        }
        let request = self.requests.get(&message.token)?;
        (request.is_observe && request.is_answered && request.subject == message.subject_hash).then_some(request.exchange)
    }

    /// The transfer that a request for a later block carries on (RFC 7959 §2.4, §2.5; trap 12).
    fn continued(&self, message: &Message) -> Option<ExchangeId> {
        let is_block1 = block(message, true).is_some_and(|(offset, _, _)| offset > 0);
        let offset = if is_block1 { block(message, true) } else { block(message, false) }?.0;
        if offset == 0 {
            return None;
        }
        let fits = |transfer: &&Transfer| {
            transfer.subject == message.subject_hash && transfer.is_block1 == is_block1 && (transfer.tag == message.body_tag || !is_block1)
        };
        let same_token = self.transfers.iter().filter(fits).find(|transfer| transfer.token == message.token);
        let next_block = || self.transfers.iter().filter(fits).find(|transfer| transfer.next == offset);
        same_token.filter(|transfer| transfer.next >= offset).or_else(next_block).map(|transfer| transfer.exchange)
    }

    /// Keeps a transfer's place. Returns whether more blocks are to come.
    fn follow_blocks(&mut self, message: &Message, exchange: ExchangeId, is_request: bool) -> bool {
        // a request announces blocks of its own body, a response of its; Block1 in a response only acknowledges
        let Some((_, next, more)) = block(message, is_request) else { return false };
        if let Some(at) = self.transfers.iter().position(|transfer| transfer.exchange == exchange) {
            self.transfers.swap_remove(at);
        }
        if more {
            let (subject, tag, token) = (message.subject_hash, message.body_tag, message.token);
            self.transfers.push(Transfer { exchange, subject, tag, token, next, is_block1: is_request });
        }
        more
    }

    /// The open request that a response answers.
    fn find(&self, message: &Message, piggybacked: Option<ExchangeId>, exchanges: &mut Exchanges) -> Option<Request> {
        if !message.token.is_empty() {
            return self.requests.get(&message.token).copied();
        }
        if piggybacked.is_some() {
            return self.anonymous.iter().find(|request| Some(request.exchange) == piggybacked).copied();
        }
        let open: Vec<&Request> = self.anonymous.iter().filter(|request| !request.is_answered || request.is_observe).collect();
        if let [only] = open.as_slice() {
            return Some(**only);
        }
        for request in open {
            exchanges.end(request.exchange, "ambiguous");
        }
        None
    }

    /// Notes the first response to a request; one without more to come is let go.
    fn answered(&mut self, message: &Message, request: &Request, is_last: bool, at: &Moment, exchanges: &mut Exchanges) {
        let is_anonymous = message.token.is_empty();
        let subject = request.subject;
        if let Some(transfer) = self.transfers.iter_mut().find(|transfer| transfer.exchange == request.exchange) {
            (transfer.subject, transfer.token) = (subject, message.token);
            if let Some(exchange) = exchanges.get_mut(request.exchange) {
                *exchange.parts.get_or_insert(0) += 1;
                exchange.kind = block_wise(exchange.kind);
            }
        } else if let Some(parts) = exchanges.get_mut(request.exchange).and_then(|exchange| exchange.parts.as_mut()) {
            *parts += 1;
        }
        let open = if is_anonymous {
            self.anonymous.iter_mut().find(|open| open.exchange == request.exchange)
        } else {
            self.requests.get_mut(&message.token)
        };
        let Some(open) = open else { return };
        open.is_answered |= is_last;
        open.freshest = message.observe.filter(|_| open.is_observe).map(|value| (value, at.time_ns));
        open.is_observe &= message.observe.is_some() || !is_last;
        let is_done = is_last && !open.is_observe && open.is_con;
        if is_done {
            self.remove_one(message, request.exchange);
        }
    }

    fn remove_one(&mut self, message: &Message, exchange: ExchangeId) {
        if message.token.is_empty() {
            self.anonymous.retain(|request| request.exchange != exchange);
        } else {
            self.requests.remove(&message.token);
        }
    }

    /// A further response to a registration (RFC 7641 §3.2).
    fn notification(&mut self, message: &Message, request: &Request, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let exchange = exchanges.open("notification", message, from, at);
        let is_fresh = message.observe.is_some_and(|value| is_fresh(request.freshest, value, at.time_ns));
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
        let is_con = message.kind == "CON";
        if !is_con {
            finish(exchange, "complete", exchanges);
        }
        if message.observe.is_none() {
            self.cancel(Some(request.exchange.number), exchanges);
        }
        let acknowledgement = if is_con && is_data { Acknowledgement::Expected } else { Acknowledgement::None };
        Placement { is_data, acknowledgement, ..alone(exchange) }
    }
}

/// RFC 7641 §3.4.
fn is_fresh(freshest: Option<(u32, i64)>, value: u32, now_ns: i64) -> bool {
    let Some((before, before_ns)) = freshest else { return true };
    now_ns > before_ns + FRESH_AFTER_NS
        || (before < value && value - before < HALF_OF_OBSERVE)
        || (before > value && before - value > HALF_OF_OBSERVE)
}

fn block_wise(kind: &'static str) -> &'static str {
    KINDS.iter().find(|(plain, _)| *plain == kind).map_or(kind, |(_, block_wise)| block_wise)
}
