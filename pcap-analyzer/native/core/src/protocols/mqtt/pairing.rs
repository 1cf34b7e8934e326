//! Which control packets belong together (MQTT 5 §4.3, §4.4): CONNECT with CONNACK, a PUBLISH with its acknowledgements, and so on.
//!
//! A PUBLISH that its receiver refuses (a reason code of 0x80 and above in PUBACK or PUBREC) has reached it, and is data; it is not delivered to anybody.
//!
//! Times: `ack_rtt` ends at PUBACK or PUBREC, `rtt` at the last packet of the flow (PUBACK, PUBCOMP, CONNACK, SUBACK, UNSUBACK, PINGRESP).
//! A PUBLISH with DUP whose identifier is in use is sent again and brings no data; so is one whose identifier is not in use where the server went on
//! with a session (§4.1): an earlier connection brought it first (trap 31). Else it is the first that the capture shows of its message, and counts.
//! PUBREL, SUBSCRIBE and UNSUBSCRIBE with DUP (MQTT 3.1 §2.1) are sent again where their exchange is open.
//! Over datagrams most requests have no DUP and are sent again as they were (MQTT-SN 1.2 §6.13): there it is enough that their exchange is open.

use crate::exchanges::{Acknowledgement, ExchangeId, Exchanges, Moment, Placement, PublicationId};
use crate::few::Few;
use crate::message::{Message, Side};
use crate::protocols::Pairing;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

const CONNECT: u8 = 1;
const CONNACK: u8 = 2;
const PUBLISH: u8 = 3;
const PUBACK: u8 = 4;
const PUBREC: u8 = 5;
const PUBREL: u8 = 6;
const PUBCOMP: u8 = 7;
const SUBSCRIBE: u8 = 8;
const SUBACK: u8 = 9;
const UNSUBSCRIBE: u8 = 10;
const UNSUBACK: u8 = 11;
const PINGREQ: u8 = 12;
const PINGRESP: u8 = 13;
/// Belongs to the CONNECT that is open, as MQTT-SN's will messages before CONNACK do.
pub const AUTH: u8 = 15;
/// MQTT-SN's REGISTER and REGACK (MQTT-SN 1.2 §5.4.10, §5.4.11), behind the numbers of MQTT.
pub const REGISTER: u8 = 20;
/// See [`REGISTER`].
pub const REGACK: u8 = 21;
/// MQTT-SN's changes of the will, each with its answer (MQTT-SN 1.2 §5.4.22 to §5.4.25).
pub const WILLTOPICUPD: u8 = 22;
/// See [`WILLTOPICUPD`].
pub const WILLTOPICRESP: u8 = 23;
/// See [`WILLTOPICUPD`].
pub const WILLMSGUPD: u8 = 24;
/// See [`WILLTOPICUPD`].
pub const WILLMSGRESP: u8 = 25;

/// Reason codes from here on tell of a failure (MQTT 5 §2.4).
const FAILURE: u8 = 0x80;

#[derive(Debug, Clone, Copy)]
struct Flow {
    exchange: ExchangeId,
    publication: Option<PublicationId>,
    is_released: bool,
}

/// What is open in a connection.
#[derive(Debug, Default)]
pub struct Flows {
    /// PUBLISH flows by who sent the PUBLISH (client, server) and packet identifier.
    publishes: [Few<u16, Flow>; 2],
    /// What is seldom open, as long as it is.
    seldom: Option<Box<Seldom>>,
    subscribed: Subscribed,
    /// Whether the server went on with a session of an earlier connection (MQTT 5 §3.2.2.1.1).
    is_resumed: bool,
    /// Whether requests are sent again until they are answered, and as they were.
    is_over_datagrams: bool,
}

/// Which publications the server may forward in a connection: none of before the subscription. Where topic and payload say the same again and again, a
/// delivery would else be taken for that of a publication that nobody had subscribed to yet.
///
/// Where the server goes on with a session, or its start is not captured, the subscription is older than the capture shows. RETAIN tells more: the server
/// forwards the message of a publisher, or sends for a new subscription one that it has kept, which is no delivery of what is published now (trap 33). To
/// most subscribers only the latter has RETAIN (MQTT 5 §3.3.1.3); those that ask for messages as published, and bridges, get both with it. So with RETAIN
/// it is taken for a message of a publisher
///
/// - that sent it after the subscriber's last SUBSCRIBE, where the subscriber asks for messages as published;
/// - where the capture shows no SUBSCRIBE: the subscription is older, and not why it is sent.
#[derive(Debug, Default)]
struct Subscribed {
    is_as_published: bool,
    /// When CONNECT or CONNACK told that the session is new; none where it is not, or its start is not captured.
    new_ns: Option<i64>,
    /// The first SUBSCRIBE since CONNECT, which need not wait for CONNACK (MQTT 5 §3.1.4).
    first_ns: Option<i64>,
    /// Publications from then on may be forwarded with RETAIN, where SUBSCRIBE tells that: the end of all times where none is.
    retained_since_ns: Option<i64>,
}

impl Subscribed {
    /// CONNECT, CONNACK or SUBSCRIBE.
    fn take(&mut self, message: &Message, at: &Moment) {
        self.is_as_published |= message.facts.is_retain_as_published;
        match message.number {
            SUBSCRIBE => {
                self.retained_since_ns = Some(if self.is_as_published { at.time_ns } else { i64::MAX });
                self.first_ns = self.first_ns.or(Some(at.time_ns));
            }
            CONNECT if is_new_session(message) => (self.new_ns, self.first_ns) = (Some(at.time_ns), None),
            CONNACK if is_new_session(message) => self.new_ns = Some(at.time_ns),
            _ => {}
        }
    }

    /// The time from which on the publications are that the server may forward with this PUBLISH.
    fn since_ns(&self, publish: &Message) -> i64 {
        let since_ns = self.new_ns.map_or(i64::MIN, |new_ns| self.first_ns.unwrap_or(new_ns));
        match (publish.row.retain, self.retained_since_ns) {
            (Some(true), Some(retained_since_ns)) => since_ns.max(retained_since_ns),
            _ => since_ns,
        }
    }
}

/// Whether CONNECT or CONNACK tells that there is nothing of an earlier connection: Clean Start, Clean Session (MQTT 5 §3.1.2.4, MQTT 3.1.1 §3.1.2.4), no
/// session present (MQTT 5 §3.2.2.1.1); MQTT 3.1 has a reserved bit there.
fn is_new_session(message: &Message) -> bool {
    let is_absent = message.row.session_present == Some(false) && message.row.version.is_some_and(|version| version > 3);
    message.row.clean_start == Some(true) || is_absent
}

/// Exchanges that are seldom open: there are many connections, so they have no room in each.
#[derive(Debug, Default)]
struct Seldom {
    /// SUBSCRIBE and UNSUBSCRIBE by packet identifier.
    requests: FxHashMap<(u8, u16), ExchangeId>,
    connects: VecDeque<ExchangeId>,
    pings: VecDeque<ExchangeId>,
}

impl Pairing for Flows {
    #[inline]
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        match message.number {
            PUBLISH => self.publish(message, from, at, exchanges),
            PUBACK | PUBREC | PUBCOMP => self.acknowledge(message, from, at, exchanges),
            PUBREL => self.release(message, from, at, exchanges),
            CONNECT => {
                self.subscribed.take(message, at);
                self.begin_by_order(|seldom| &mut seldom.connects, message, from, at, exchanges)
            }
            PINGREQ => self.begin_by_order(|seldom| &mut seldom.pings, message, from, at, exchanges),
            CONNACK => {
                self.subscribed.take(message, at);
                self.is_resumed = message.row.session_present == Some(true);
                let connect = self.take_seldom(|seldom| seldom.connects.pop_front());
                answer(connect, message, at, exchanges)
            }
            PINGRESP => answer(self.take_seldom(|seldom| seldom.pings.pop_front()), message, at, exchanges),
            SUBSCRIBE | UNSUBSCRIBE | REGISTER | WILLTOPICUPD | WILLMSGUPD => self.request(message, from, at, exchanges),
            SUBACK | UNSUBACK | REGACK | WILLTOPICRESP | WILLMSGRESP => self.answer_request(message.number - 1, message, at, exchanges),
            AUTH => self.authenticate(message, at, exchanges),
            _ => Placement::default(),
        }
    }

    fn touch(&self, from: Side) -> u64 {
        self.publishes.get(from.index()).map_or(0, Few::touch)
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        let flows = self.publishes.iter_mut().flat_map(|flows| flows.take_all().map(|flow| flow.exchange));
        let Seldom { requests, connects, pings } = *self.seldom.take().unwrap_or_default();
        let mut open: Vec<ExchangeId> = flows.chain(requests.into_values()).chain(connects).chain(pings).collect();
        open.sort_unstable();
        for exchange in open {
            close(exchange, "unanswered", exchanges);
        }
    }
}

/// A request's place among those that are open; will updates of MQTT-SN have no identifier.
fn request_key(message: &Message, number: u8) -> (u8, u16) {
    (number, message.message_id.unwrap_or(0))
}

fn close(exchange: ExchangeId, outcome: &'static str, exchanges: &mut Exchanges) {
    exchanges.end(exchange, outcome);
    exchanges.forget(exchange);
}

/// A request that is sent again.
fn repeat_request(exchange: ExchangeId, message: &Message, at: &Moment, exchanges: &mut Exchanges) -> Placement {
    exchanges.repeat(exchange, message, at, true);
    Placement { is_retransmission: true, ..Placement::of(exchange) }
}

/// Ends an exchange with its only answer.
fn answer(exchange: Option<ExchangeId>, message: &Message, at: &Moment, exchanges: &mut Exchanges) -> Placement {
    let Some(exchange) = exchange else { return Placement::UNMATCHED };
    exchanges.join(exchange, message, at);
    exchanges.respond(exchange, at);
    tell_result(exchange, message, exchanges);
    close(exchange, "complete", exchanges);
    Placement::of(exchange)
}

fn tell_result(exchange: ExchangeId, message: &Message, exchanges: &mut Exchanges) {
    if !exchanges.wants_rows() {
        return;
    }
    if let (Some(exchange), Some(result)) = (exchanges.get_mut(exchange), message.result) {
        exchange.result = format!("0x{result:02x}");
    }
}

const KINDS: [&str; 3] = ["PUBLISH QoS 0", "PUBLISH QoS 1", "PUBLISH QoS 2"];
/// That of a client without a connection (MQTT-SN 1.2 §6.8), which is none of MQTT's.
const WITHOUT_CONNECTION: &str = "PUBLISH QoS -1";

impl Flows {
    /// Those of a client whose datagrams may be lost.
    pub fn over_datagrams() -> Self {
        Self { is_over_datagrams: true, ..Self::default() }
    }

    fn seldom(&mut self) -> &mut Seldom {
        self.seldom.get_or_insert_default()
    }

    /// Takes something out of what is seldom open; where nothing is left there, it goes.
    fn take_seldom(&mut self, take: impl FnOnce(&mut Seldom) -> Option<ExchangeId>) -> Option<ExchangeId> {
        let taken = self.seldom.as_mut().and_then(|seldom| take(seldom));
        self.seldom.take_if(|seldom| seldom.requests.is_empty() && seldom.connects.is_empty() && seldom.pings.is_empty());
        taken
    }

    /// Begins an exchange that its answer finds by order.
    fn begin_by_order(
        &mut self,
        queue: impl FnOnce(&mut Seldom) -> &mut VecDeque<ExchangeId>,
        message: &Message,
        from: Side,
        at: &Moment,
        exchanges: &mut Exchanges,
    ) -> Placement {
        let is_over_datagrams = self.is_over_datagrams;
        let queue = queue(self.seldom());
        match queue.front() {
            Some(&open) if is_over_datagrams => repeat_request(open, message, at, exchanges),
            _ => {
                let exchange = exchanges.open(message.kind, message, from, at);
                queue.push_back(exchange);
                Placement::of(exchange)
            }
        }
    }

    fn flows(&mut self, from: Side) -> &mut Few<u16, Flow> {
        let [client, server] = &mut self.publishes;
        match from {
            Side::Client => client,
            Side::Server => server,
        }
    }

    /// §3.3
    #[inline]
    fn publish(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let qos = message.qos.unwrap_or(0);
        let identifier = message.message_id.filter(|_| qos > 0);
        match identifier.and_then(|identifier| self.flows(from).get(&identifier).copied()) {
            Some(flow) if message.dup == Some(true) => return repeat(&flow, message, at, exchanges),
            Some(flow) => close(flow.exchange, "unanswered", exchanges),
            None => {}
        }
        if let Some(identifier) = identifier.filter(|_| self.is_resumed && message.dup == Some(true)) {
            return self.carry_over(identifier, message, from, at, exchanges);
        }
        let exchange = begin(message, message.qos, from, at, exchanges);
        let publication = match from {
            Side::Client => Some(exchanges.publish(exchange, message, at)),
            Side::Server => {
                exchanges.deliver_publication(exchange, message, at, self.subscribed.since_ns(message));
                None
            }
        };
        let acknowledgement = match identifier {
            Some(identifier) => {
                self.flows(from).insert(identifier, Flow { exchange, publication, is_released: false });
                Acknowledgement::Expected
            }
            // where the identifier was not captured nobody knows what acknowledges it
            None => {
                close(exchange, if qos == 0 { "complete" } else { "ambiguous" }, exchanges);
                Acknowledgement::None
            }
        };
        Placement { is_data: true, acknowledgement, ..Placement::of(exchange) }
    }

    /// A PUBLISH or PUBREL of a flow that an earlier connection of the session began.
    fn carry_over(&mut self, identifier: u16, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        // only flows of QoS 2 have PUBREL
        let exchange = begin(message, message.qos.or(Some(2)), from, at, exchanges);
        exchanges.again(exchange, true);
        if let Some(exchange) = exchanges.get_mut(exchange) {
            exchange.payload_bytes = 0;
        }
        self.flows(from).insert(identifier, Flow { exchange, publication: None, is_released: false });
        Placement { is_retransmission: true, is_of_earlier_connection: true, ..Placement::of(exchange) }
    }

    /// PUBACK (§3.4), PUBREC (§3.5), PUBCOMP (§3.7), from the receiver of the PUBLISH.
    #[inline]
    fn acknowledge(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let Some(identifier) = message.message_id else { return Placement::default() };
        let is_refusal = message.number != PUBCOMP && message.result.is_some_and(|reason| reason >= FAILURE);
        let is_last = message.number != PUBREC || is_refusal;
        let flows = self.flows(from.peer());
        let flow = if is_last { flows.remove(&identifier) } else { flows.get(&identifier).copied() };
        let Some(Flow { exchange, publication, .. }) = flow else { return Placement::UNMATCHED };
        exchanges.join(exchange, message, at);
        if let Some(publication) = publication {
            exchanges.add_to_leg(publication, message);
            if is_refusal {
                exchanges.refuse(publication);
            }
        }
        if message.number != PUBCOMP {
            exchanges.acknowledge(exchange, at);
        }
        tell_result(exchange, message, exchanges);
        let mut acknowledgement = Acknowledgement::None;
        if is_last {
            exchanges.respond(exchange, at);
            close(exchange, "complete", exchanges);
            acknowledgement = Acknowledgement::Given;
        }
        Placement { acknowledgement, is_refusal, ..Placement::of(exchange) }
    }

    /// PUBREL (§3.6), from the sender of the PUBLISH.
    fn release(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let Some(identifier) = message.message_id else { return Placement::default() };
        let (is_over_datagrams, is_resumed) = (self.is_over_datagrams, self.is_resumed);
        let Some(flow) = self.flows(from).get_mut(&identifier) else {
            return if is_resumed { self.carry_over(identifier, message, from, at, exchanges) } else { Placement::default() };
        };
        let was_released = std::mem::replace(&mut flow.is_released, true);
        let flow = *flow;
        let is_retransmission = message.dup == Some(true) || (was_released && is_over_datagrams);
        if is_retransmission {
            exchanges.repeat(flow.exchange, message, at, false);
        } else {
            exchanges.join(flow.exchange, message, at);
        }
        if let Some(publication) = flow.publication {
            exchanges.add_to_leg(publication, message);
        }
        Placement { is_retransmission, ..Placement::of(flow.exchange) }
    }

    /// SUBSCRIBE (§3.8), UNSUBSCRIBE (§3.10)
    fn request(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        self.subscribed.take(message, at);
        let key = request_key(message, message.number);
        if let Some(exchange) = self.open_request(key).filter(|_| message.dup == Some(true) || self.is_over_datagrams) {
            return repeat_request(exchange, message, at, exchanges);
        }
        let exchange = exchanges.open(message.kind, message, from, at);
        if let Some(old) = self.seldom().requests.insert(key, exchange) {
            close(old, "unanswered", exchanges);
        }
        Placement::of(exchange)
    }

    fn open_request(&self, key: (u8, u16)) -> Option<ExchangeId> {
        self.seldom.as_ref()?.requests.get(&key).copied()
    }

    /// SUBACK (§3.9), UNSUBACK (§3.11). Requests are rare, and connections may be many: no room is kept for the next one.
    fn answer_request(&mut self, request: u8, message: &Message, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let exchange = self.take_seldom(|seldom| seldom.requests.remove(&request_key(message, request)));
        answer(exchange, message, at, exchanges)
    }

    /// AUTH (§3.15) belongs to the CONNECT that is open; a re-authentication stands alone.
    fn authenticate(&self, message: &Message, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let connect = self.seldom.as_ref().and_then(|seldom| seldom.connects.front().copied());
        if let Some(connect) = connect {
            exchanges.join(connect, message, at);
        }
        Placement { exchange: connect, ..Placement::default() }
    }
}

/// Begins the flow of a PUBLISH.
#[inline]
fn begin(message: &Message, qos: Option<u8>, from: Side, at: &Moment, exchanges: &mut Exchanges) -> ExchangeId {
    let kind = qos.map_or(WITHOUT_CONNECTION, |qos| KINDS.get(usize::from(qos)).copied().unwrap_or("PUBLISH"));
    let exchange = exchanges.open(kind, message, from, at);
    let wants_rows = exchanges.wants_rows();
    if let Some(begun) = exchanges.get_mut(exchange) {
        begun.payload_bytes = message.payload_bytes.into();
        if wants_rows {
            begun.resource = message.topic_name.get().unwrap_or("").to_owned();
        }
    }
    exchange
}

/// A PUBLISH that is sent again.
fn repeat(flow: &Flow, message: &Message, at: &Moment, exchanges: &mut Exchanges) -> Placement {
    exchanges.repeat(flow.exchange, message, at, true);
    if let Some(publication) = flow.publication {
        exchanges.add_to_leg(publication, message);
    }
    Placement { is_retransmission: true, ..Placement::of(flow.exchange) }
}
