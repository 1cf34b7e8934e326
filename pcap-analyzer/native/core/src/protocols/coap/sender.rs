//! What one side of a conversation has asked and sent, and what of it is open.

use super::codes::code_of;
use super::ids::{Ids, Role, Sent, NON_LIFETIME_NS};
use super::transfers::{is_later_block, Rest, Transfers};
use crate::exchanges::{Acknowledgement, ExchangeId, Exchanges, Moment, Placement};
use crate::few::Few;
use crate::message::{Message, Side, Token};

/// How a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Until it is acknowledged.
    Confirmable,
    /// Once, and maybe to many.
    NonConfirmable,
    /// Over a transport that loses nothing and sends nothing twice: a request gets one response (RFC 8323 §3.3).
    Reliable,
}

impl Manner {
    #[inline]
    pub(super) fn of(message: &Message) -> Self {
        match message.kind {
            "CON" => Self::Confirmable,
            "NON" => Self::NonConfirmable,
            _ => Self::Reliable,
        }
    }

    /// Ends an exchange, which late duplicates may join as long as there can be any.
    #[inline]
    pub(super) fn finish(self, exchange: ExchangeId, outcome: &'static str, exchanges: &mut Exchanges) {
        finish(exchange, outcome, exchanges);
        if self == Self::Reliable {
            exchanges.forget(exchange);
        }
    }
}

/// A request that may get (more) responses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) exchange: ExchangeId,
    pub(super) time_ns: i64,
    pub(super) subject: u64,
    pub(super) manner: Manner,
    pub(super) is_observe: bool,
    pub(super) is_answered: bool,
    /// Its number among the client's registrations, where it is one.
    pub(super) registration: u16,
    /// Observe value and time of the freshest notification.
    pub(super) freshest: Option<(u32, i64)>,
}

impl Request {
    /// One that was just sent.
    #[inline]
    pub(super) fn new(exchange: ExchangeId, message: &Message, at: &Moment) -> Self {
        let (subject, manner, is_observe) = (message.subject_hash, Manner::of(message), message.observe == Some(0));
        Self { exchange, time_ns: at.time_ns, subject, manner, is_observe, is_answered: false, registration: 0, freshest: None }
    }

    /// A request of which no more is known than its message.
    const fn of(sent: &Sent) -> Self {
        let &Sent { exchange, time_ns, .. } = sent;
        Self {
            exchange,
            time_ns,
            subject: 0,
            manner: Manner::Confirmable,
            is_observe: false,
            is_answered: false,
            registration: 0,
            freshest: None,
        }
    }
}

/// What one side has sent.
#[derive(Debug, Default)]
pub(super) struct Sender {
    pub(super) ids: Ids,
    /// Two in place: who observes often asks too.
    pub(super) requests: Few<Token, Request, 2>,
    /// Requests with the empty token, of which several can be open.
    pub(super) anonymous: Vec<Request>,
    pub(super) transfers: Transfers,
    /// Time of the last request for a resource.
    polled: Few<u64, i64>,
    has_superseded: bool,
    /// How many registrations there were, which numbers them.
    pub(super) registrations: u16,
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

fn block_wise(kind: &'static str) -> &'static str {
    KINDS.iter().find(|(plain, _)| *plain == kind).map_or(kind, |(_, block_wise)| block_wise)
}

impl Sender {
    /// Forgets messages whose IDs are forgotten, and what was kept for as long.
    pub(super) fn let_go_of(&mut self, mut old: Vec<Sent>, now_ns: i64, exchanges: &mut Exchanges) {
        old.sort_unstable_by_key(|sent| sent.exchange);
        for sent in &old {
            self.let_go(sent, exchanges);
        }
        self.requests.retain(|request| request.is_observe || !request.is_answered || now_ns - request.time_ns < NON_LIFETIME_NS);
    }

    /// Nothing can join the exchange of this message any more, unless it is a registration or goes on with a later message.
    pub(super) fn let_go(&mut self, sent: &Sent, exchanges: &mut Exchanges) {
        match sent.role {
            Role::Request => {
                let open = self.requests.values().chain(&self.anonymous).filter(|request| request.exchange == sent.exchange);
                match open.max_by_key(|request| request.time_ns) {
                    Some(request) if request.is_observe || request.time_ns > sent.time_ns => return,
                    Some(request) if !request.is_answered => {
                        exchanges.end(sent.exchange, "unanswered");
                        self.remove(sent.exchange);
                    }
                    _ => {}
                }
                exchanges.forget(sent.exchange);
            }
            Role::Superseded => {
                exchanges.end(sent.exchange, "superseded");
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

    /// The conversation ends.
    pub(super) fn end(&mut self, exchanges: &mut Exchanges) {
        let open = self.requests.take_all().chain(self.anonymous.drain(..)).filter(|request| !request.is_answered);
        let mut open: Vec<(ExchangeId, &str)> = open.map(|request| (request.exchange, "unanswered")).collect();
        if self.has_superseded {
            let superseded = self.ids.iter().filter(|sent| sent.role == Role::Superseded);
            open.extend(superseded.map(|sent| (sent.exchange, "superseded")));
        }
        open.sort_unstable();
        for (exchange, outcome) in open {
            exchanges.end(exchange, outcome);
        }
    }

    /// Forgets what is open of an exchange.
    pub(super) fn remove(&mut self, exchange: ExchangeId) {
        self.requests.retain(|request| request.exchange != exchange);
        self.anonymous.retain(|request| request.exchange != exchange);
        self.transfers.remove(exchange);
    }

    /// Begins an exchange with a request.
    #[inline]
    pub(super) fn begin(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> ExchangeId {
        let exchange = exchanges.open(kind(message), message, from, at);
        if exchanges.wants_rows() {
            if let Some(begun) = exchanges.get_mut(exchange) {
                message.uri_path.get().unwrap_or("").clone_into(&mut begun.resource);
            }
        }
        if is_later_block(message) {
            return exchange;
        }
        if let Some(before_ns) = self.polled.insert(message.subject_hash, at.time_ns) {
            exchanges.interval(exchange, at.time_ns - before_ns);
        }
        exchange
    }

    /// The exchange of the transfer that a request carries on. It takes the place of the request before, also with another token: that one is
    /// answered, unless several are sent at once, which is not done with Confirmable ones.
    #[inline]
    pub(super) fn continued(&mut self, message: &Message) -> Option<ExchangeId> {
        let (exchange, token) = self.transfers.continued(message)?;
        let is_done = |request: &Request| request.exchange == exchange && request.manner != Manner::NonConfirmable;
        if token != message.token && self.requests.get(&token).is_some_and(is_done) {
            self.requests.remove(&token);
        }
        Some(exchange)
    }

    /// Notes a request as open. One with the same token before it cannot be told apart from it any more (RFC 7252 §5.3.1).
    #[inline]
    pub(super) fn open(&mut self, message: &Message, mut request: Request, exchanges: &mut Exchanges) {
        if request.is_observe {
            self.number(message.token, &mut request);
        }
        if message.token.is_empty() {
            return self.open_anonymous(request, exchanges);
        }
        let Some(old) = self.requests.insert(message.token, request) else { return };
        if old.exchange != request.exchange {
            self.replace(&old, message.observe, exchanges);
        } else if old.is_registered() && !request.is_observe {
            self.requests.insert(message.token, old);
        }
    }

    fn open_anonymous(&mut self, request: Request, exchanges: &mut Exchanges) {
        self.anonymous.retain(|open| open.exchange != request.exchange && (!open.is_answered || open.is_observe));
        if let Some(at) = self.anonymous.iter().position(|open| request.renews(open)) {
            let old = self.anonymous.remove(at);
            self.replace(&old, Some(0), exchanges);
        }
        self.anonymous.push(request);
    }

    /// A request took the token of an `old` one.
    fn replace(&mut self, old: &Request, observe: Option<u32>, exchanges: &mut Exchanges) {
        if old.is_observe && observe == Some(1) {
            self.close(old.exchange, "cancelled", exchanges);
        } else if old.is_registered() && observe == Some(0) {
            self.close(old.exchange, "complete", exchanges);
        } else if !old.is_answered {
            self.supersede(old, exchanges);
        }
    }

    /// A later request took the token of one that is not answered. A response can still name that one by its message ID, until an empty ACK did.
    fn supersede(&mut self, request: &Request, exchanges: &mut Exchanges) {
        match self.began(request.exchange, exchanges) {
            Some(sent) if sent.is_con && !sent.is_acknowledged => {
                sent.role = Role::Superseded;
                self.has_superseded = true;
            }
            _ => self.close(request.exchange, "superseded", exchanges),
        }
    }

    /// Ends an exchange. Nothing can join it any more where the ID of the message that began it is not remembered.
    pub(super) fn close(&mut self, exchange: ExchangeId, outcome: &'static str, exchanges: &mut Exchanges) {
        exchanges.end(exchange, outcome);
        if self.began(exchange, exchanges).is_none() {
            exchanges.forget(exchange);
        }
    }

    /// The message that began an exchange, as long as its ID is remembered.
    fn began(&mut self, exchange: ExchangeId, exchanges: &Exchanges) -> Option<&mut Sent> {
        let id = exchanges.get(exchange)?.message_id?;
        self.ids.get_mut(id).filter(|sent| sent.exchange == exchange)
    }

    /// The open request that a response answers: by its token, and where it comes with the ACK by the message ID of what was `asked` too
    /// (RFC 7252 §5.3.2).
    #[inline]
    pub(super) fn find(&self, message: &Message, asked: Option<&Sent>, exchanges: &mut Exchanges) -> Option<Request> {
        if message.token.is_empty() {
            return self.find_anonymous(asked, exchanges);
        }
        let request = self.requests.get(&message.token);
        match asked {
            Some(sent) if request.is_none_or(|request| request.exchange != sent.exchange) => superseded(sent, message.token, exchanges),
            _ => request.copied(),
        }
    }

    fn find_anonymous(&self, asked: Option<&Sent>, exchanges: &mut Exchanges) -> Option<Request> {
        if let Some(sent) = asked {
            return self.anonymous.iter().find(|request| request.exchange == sent.exchange).copied();
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

    /// Notes a response to a request. What has no more to come ends there, unless it is a registration.
    #[inline]
    pub(super) fn answered(&mut self, message: &Message, request: &Request, at: &Moment, exchanges: &mut Exchanges) {
        let exchange = request.exchange;
        if request.manner == Manner::Confirmable {
            exchanges.acknowledge(exchange, at);
        }
        // what is observed comes with its first block; the others are asked for by requests of their own (RFC 7959 §3.4)
        let is_registered = request.is_observe && message.observe.is_some();
        let rest = if is_registered { Rest::None } else { self.transfers.rest(message, exchange) };
        self.count_block(message, request, exchanges);
        self.note_answer(message, request, rest, at);
        if rest == Rest::None {
            exchanges.respond(exchange, at);
        }
        if rest == Rest::None && !is_registered {
            // a body that was refused midway begins anew
            self.transfers.remove(exchange);
            request.manner.finish(exchange, "complete", exchanges);
        }
    }

    fn count_block(&mut self, message: &Message, request: &Request, exchanges: &mut Exchanges) {
        if self.transfers.answered(request.exchange, request.subject, message.token) {
            if let Some(exchange) = exchanges.get_mut(request.exchange) {
                *exchange.parts.get_or_insert(0) += 1;
                exchange.kind = block_wise(exchange.kind);
            }
        } else if let Some(parts) = exchanges.get_mut(request.exchange).and_then(|exchange| exchange.parts.as_mut()) {
            *parts += 1;
        }
    }

    /// Notes what a response says of its request; one without more to come is let go.
    fn note_answer(&mut self, message: &Message, request: &Request, rest: Rest, at: &Moment) {
        let open = if message.token.is_empty() {
            self.anonymous.iter_mut().find(|open| open.exchange == request.exchange)
        } else {
            self.requests.get_mut(&message.token)
        };
        let Some(open) = open.filter(|open| open.exchange == request.exchange) else { return };
        let is_last = rest == Rest::None;
        open.is_answered |= is_last;
        open.freshest = message.observe.filter(|_| open.is_observe).map(|value| (value, at.time_ns));
        open.is_observe &= message.observe.is_some() || rest == Rest::OfRequest;
        let is_done = is_last && !open.is_observe && open.manner != Manner::NonConfirmable;
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
}

/// The request that a message was whose token names a later one by now.
fn superseded(sent: &Sent, token: Token, exchanges: &Exchanges) -> Option<Request> {
    let is_its = || exchanges.get(sent.exchange).is_some_and(|exchange| exchange.token == token);
    (sent.role == Role::Superseded && is_its()).then(|| Request::of(sent))
}

/// What a message is that belongs to an exchange and is nothing more.
pub(super) const fn alone(exchange: ExchangeId) -> Placement {
    let acknowledgement = Acknowledgement::None;
    Placement { exchange: Some(exchange), is_data: false, is_retransmission: false, is_of_earlier_connection: false, acknowledgement }
}

/// Ends an exchange; where nobody wants its row, nothing needs to be kept of it.
pub(super) fn finish(exchange: ExchangeId, outcome: &'static str, exchanges: &mut Exchanges) {
    exchanges.end(exchange, outcome);
    if !exchanges.wants_rows() {
        exchanges.forget(exchange);
    }
}

/// Counts the data of a message for its exchange.
pub(super) fn add_data(exchange: ExchangeId, message: &Message, is_data: bool, exchanges: &mut Exchanges) {
    if let Some(exchange) = exchanges.get_mut(exchange).filter(|_| is_data) {
        exchange.payload_bytes += u64::from(message.payload_bytes);
    }
}

/// Keeps the response code as the result, where rows are wanted.
pub(super) fn tell_result(exchange: ExchangeId, message: &Message, exchanges: &mut Exchanges) {
    if !exchanges.wants_rows() {
        return;
    }
    if let Some(exchange) = exchanges.get_mut(exchange) {
        message.variant.clone_into(&mut exchange.result);
    }
}
