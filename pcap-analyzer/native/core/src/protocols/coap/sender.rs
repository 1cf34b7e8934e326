//! What one side of a conversation has asked and sent, and what of it is open.

use super::codes::{code_of, is_success};
use super::ids::{Ids, Role, Sent, NON_LIFETIME_NS};
use super::transfers::{is_later_block, Rest, Transfers};
use crate::exchanges::{ExchangeId, Exchanges, Moment, Placement};
use crate::few::Few;
use crate::message::{Message, Side, Token};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;

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
    /// Whether its block of a transfer was answered, and another is to be asked for: until then it needs no token.
    is_between_blocks: bool,
    /// Whether it asks for no response, or for none of some class (RFC 7967 §2.1).
    is_suppressing: bool,
    /// Its number among the client's registrations, where it is one.
    pub(super) registration: u16,
    /// Observe value and time of the freshest notification.
    pub(super) freshest: Option<(u32, i64)>,
}

impl Request {
    /// One that was just sent.
    #[inline]
    pub(super) fn new(exchange: ExchangeId, message: &Message, at: &Moment) -> Self {
        /// Bits for the classes 2, 4 and 5 of responses.
        const CLASSES: u8 = 0b1_1010;
        Self {
            exchange,
            time_ns: at.time_ns,
            subject: message.subject_hash,
            manner: Manner::of(message),
            is_observe: message.observe == Some(0),
            is_answered: false,
            is_between_blocks: false,
            is_suppressing: message.no_response.is_some_and(|classes| classes & CLASSES != 0),
            registration: 0,
            freshest: None,
        }
    }

    /// A registration of before the capture.
    pub(super) const fn before_capture(registration: u16, time_ns: i64) -> Self {
        Self { is_observe: true, is_answered: true, registration, ..Self::bare(ExchangeId::before_capture(registration), time_ns) }
    }

    /// Whether a response may come for it.
    const fn is_awaiting(&self) -> bool {
        self.is_observe || !(self.is_answered || self.is_between_blocks)
    }

    /// How it ends where no (further) response has come. Nothing was asked for that did not come where the next block was not.
    const fn outcome_without_response(&self) -> &'static str {
        if self.is_between_blocks {
            "open"
        } else if self.is_suppressing {
            "suppressed"
        } else {
            "unanswered"
        }
    }

    /// A request of which no more is known than its message.
    const fn bare(exchange: ExchangeId, time_ns: i64) -> Self {
        Self {
            exchange,
            time_ns,
            subject: 0,
            manner: Manner::Confirmable,
            is_observe: false,
            is_answered: false,
            is_between_blocks: false,
            is_suppressing: false,
            registration: 0,
            freshest: None,
        }
    }
}

/// What one side has sent; first what every message needs, in as few lines of the processor's cache as it takes.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Sender {
    pub(super) ids: Ids,
    pub(super) transfers: Transfers,
    /// Two in place: who observes often asks too.
    pub(super) requests: Few<Token, Request, 2>,
    /// Time of the last request for a resource.
    polled: Few<u64, i64>,
    /// Requests that no token names: those with the empty one, of which several can be open, and those between two blocks of a transfer, whose token
    /// another has by now.
    pub(super) anonymous: BTreeMap<ExchangeId, Request>,
    /// Messages whose IDs others have now, and that are to be let go together.
    replaced: Vec<Sent>,
    /// How many registrations there were, which numbers them.
    pub(super) registrations: u16,
    /// Tokens of registrations, given up or not: one that is not among them began before the capture.
    pub(super) registered: FxHashSet<Token>,
    /// Whether some of the anonymous ones were answered and are not let go yet.
    has_answered_anonymous: bool,
    has_superseded: bool,
}

/// Messages that are let go together at the least.
const FEW_REPLACED: usize = 16;

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
    /// Reads a little of what the next message of a side that asks will need.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.ids.touch() ^ self.requests.touch() ^ self.polled.touch()
    }

    /// Forgets messages whose IDs are forgotten, and what was kept for as long.
    pub(super) fn let_go_of(&mut self, mut old: Vec<Sent>, now_ns: i64, exchanges: &mut Exchanges) {
        old.sort_unstable_by_key(|sent| sent.exchange);
        // what is open is many where nothing is answered, so it is gone through once, and not for each message
        let mut open: FxHashMap<ExchangeId, Request> = FxHashMap::default();
        for request in self.requests.values().chain(self.anonymous.values()) {
            let latest = open.entry(request.exchange).or_insert(*request);
            if request.time_ns > latest.time_ns {
                *latest = *request;
            }
        }
        let given_up: FxHashSet<ExchangeId> =
            old.iter().filter(|sent| let_go(sent, open.get(&sent.exchange), exchanges)).map(|sent| sent.exchange).collect();
        let is_kept = |exchange| !given_up.contains(&exchange);
        let is_recent =
            |request: &Request| request.is_observe || !request.is_answered || now_ns.saturating_sub(request.time_ns) < NON_LIFETIME_NS;
        self.requests.retain(|request| is_recent(request) && is_kept(request.exchange));
        self.anonymous.retain(|&exchange, _| is_kept(exchange));
        self.transfers.retain(is_kept);
    }

    /// Forgets a message whose ID another one has now, with others of them.
    pub(super) fn let_go_soon(&mut self, sent: Sent, now_ns: i64, exchanges: &mut Exchanges) {
        self.replaced.push(sent);
        if self.replaced.len() >= FEW_REPLACED.max(self.ids.len() / 4) {
            self.let_go_of_replaced(now_ns, exchanges);
        }
    }

    fn let_go_of_replaced(&mut self, now_ns: i64, exchanges: &mut Exchanges) {
        let replaced = std::mem::take(&mut self.replaced);
        self.let_go_of(replaced, now_ns, exchanges);
    }

    /// The conversation ends.
    pub(super) fn end(&mut self, exchanges: &mut Exchanges) {
        self.let_go_of_replaced(i64::MAX, exchanges);
        let open = self.requests.take_all().chain(std::mem::take(&mut self.anonymous).into_values()).filter(|request| !request.is_answered);
        // of several requests of an exchange the latest decides
        let mut open: Vec<(ExchangeId, Reverse<i64>, &str)> =
            open.map(|request| (request.exchange, Reverse(request.time_ns), request.outcome_without_response())).collect();
        if self.has_superseded {
            let superseded = self.ids.iter().filter(|sent| sent.role == Role::Superseded);
            open.extend(superseded.map(|sent| (sent.exchange, Reverse(sent.time_ns), "superseded")));
        }
        open.sort_unstable();
        for (exchange, _, outcome) in open {
            exchanges.end(exchange, outcome);
        }
    }

    /// Forgets what is open of an exchange.
    pub(super) fn remove(&mut self, exchange: ExchangeId) {
        self.requests.retain(|request| request.exchange != exchange);
        self.anonymous.remove(&exchange);
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
        self.anonymous.remove(&exchange);
        Some(exchange)
    }

    /// The open request of an exchange, by its token.
    #[inline]
    pub(super) fn open_mut(&mut self, token: Token, exchange: ExchangeId) -> Option<&mut Request> {
        if token.is_empty() {
            return self.anonymous.get_mut(&exchange);
        }
        self.requests.get_mut(&token).filter(|open| open.exchange == exchange)
    }

    /// Notes a request as open. One with the same token before it cannot be told apart from it any more (RFC 7252 §5.3.1).
    #[inline]
    pub(super) fn open(&mut self, message: &Message, mut request: Request, exchanges: &mut Exchanges) {
        if request.is_observe {
            self.register(message.token);
            self.number(message.token, &mut request);
        }
        if message.token.is_empty() {
            return self.open_anonymous(request, exchanges);
        }
        let Some(old) = self.requests.insert(message.token, request) else { return };
        if old.exchange != request.exchange {
            self.replace(&old, &request, message.observe, exchanges);
        } else if old.is_registered() && !request.is_observe {
            self.requests.insert(message.token, old);
        }
    }

    fn open_anonymous(&mut self, request: Request, exchanges: &mut Exchanges) {
        if std::mem::take(&mut self.has_answered_anonymous) {
            self.anonymous.retain(|_, open| !open.is_answered || open.is_observe);
        }
        self.anonymous.remove(&request.exchange);
        let renewed = if request.is_observe { self.anonymous.values().find(|open| request.renews(open)).copied() } else { None };
        if let Some(old) = renewed {
            self.anonymous.remove(&old.exchange);
            self.replace(&old, &request, Some(0), exchanges);
        }
        self.anonymous.insert(request.exchange, request);
    }

    /// A request took the token of an `old` one. Between two blocks a token is free for others (RFC 7252 §5.3.1); who asks anew for the same gives the
    /// transfer up.
    fn replace(&mut self, old: &Request, new: &Request, observe: Option<u32>, exchanges: &mut Exchanges) {
        if old.is_observe && observe == Some(1) {
            self.close(old.exchange, "cancelled", exchanges);
        } else if old.is_registered() && observe == Some(0) {
            self.close(old.exchange, "complete", exchanges);
        } else if old.is_between_blocks && old.subject != new.subject {
            self.anonymous.insert(old.exchange, *old);
        } else if !old.is_answered {
            self.transfers.remove(old.exchange);
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
            return self.anonymous.get(&sent.exchange).copied();
        }
        let open: Vec<&Request> = self.anonymous.values().filter(|request| request.is_awaiting()).collect();
        if let [only] = open.as_slice() {
            return Some(**only);
        }
        for request in open {
            exchanges.end(request.exchange, "ambiguous");
        }
        None
    }

    /// What a response is whose request cannot be told: it brings data all the same where it answers one of several, or where nothing that this side asked
    /// is in the capture, so that its request was before, or goes another way. Behind a request it may be a second response to one that was answered, and
    /// behind a registration a notification of one that was given up.
    pub(super) fn unmatched(&self, message: &Message) -> Placement {
        let is_one_of_several = message.token.is_empty() && !self.anonymous.is_empty();
        let has_content = message.payload_bytes > 0 && is_success(message);
        let is_of_before = self.polled.is_empty() && !self.registered.contains(&message.token);
        let is_data = has_content && (is_one_of_several || is_of_before);
        Placement { is_data, is_unmatched: !is_one_of_several, ..Placement::default() }
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
        let Some(open) = self.open_mut(message.token, request.exchange) else { return };
        let is_last = rest == Rest::None;
        open.is_between_blocks = !is_last;
        open.is_answered |= is_last;
        open.freshest = message.observe.filter(|_| open.is_observe).map(|value| (value, at.time_ns));
        open.is_observe &= message.observe.is_some() || rest == Rest::OfRequest;
        let is_done = is_last && !open.is_observe && open.manner != Manner::NonConfirmable;
        if is_done {
            self.remove_one(message, request.exchange);
        } else {
            self.has_answered_anonymous |= is_last && message.token.is_empty();
        }
    }

    fn remove_one(&mut self, message: &Message, exchange: ExchangeId) {
        if message.token.is_empty() {
            self.anonymous.remove(&exchange);
        } else {
            self.requests.remove(&message.token);
        }
    }
}

/// Nothing can join the exchange of this message any more, unless it is a registration or goes on with a later message. Returns whether the exchange is
/// given up: its `latest` open request got no answer.
fn let_go(sent: &Sent, latest: Option<&Request>, exchanges: &mut Exchanges) -> bool {
    let outcome = match (sent.role, latest) {
        (Role::Response | Role::Unmatched, _) => return false,
        (Role::Request, Some(latest)) if latest.is_observe || latest.time_ns > sent.time_ns => return false,
        (Role::Request, Some(latest)) if !latest.is_answered => Some(latest.outcome_without_response()),
        (Role::Request, _) => None,
        (Role::Superseded, _) => Some("superseded"),
        (Role::Notification, _) => Some(if sent.is_con { "unanswered" } else { "complete" }),
        (Role::Ping, _) => Some("unanswered"),
    };
    if let Some(outcome) = outcome {
        exchanges.end(sent.exchange, outcome);
    }
    exchanges.forget(sent.exchange);
    sent.role == Role::Request && outcome.is_some()
}

/// The request that a message was whose token names a later one by now.
fn superseded(sent: &Sent, token: Token, exchanges: &Exchanges) -> Option<Request> {
    let is_its = || exchanges.get(sent.exchange).is_some_and(|exchange| exchange.token == token);
    (sent.role == Role::Superseded && is_its()).then(|| Request::bare(sent.exchange, sent.time_ns))
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
