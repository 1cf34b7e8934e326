//! What is counted of one session: integers only.

use super::samples::Samples;
use crate::exchanges::{Acknowledgement, ExchangeId, Placement, Timing};
use crate::message::{Message, Parts, Side};
use crate::packet::{Endpoint, Headers};

/// The nine parts of bytes on the wire, as sums.
pub type PartSums = [u64; 9];

/// Adds the parts of a message to sums.
#[inline]
pub fn add(sums: &mut PartSums, parts: &Parts) {
    for (sum, part) in sums.iter_mut().zip(parts) {
        *sum += u64::from(*part);
    }
}

/// The parts of bytes that are no message: headers, and the rest as opaque.
#[inline]
#[must_use]
pub fn without_message(headers: &Headers, bytes: u64) -> PartSums {
    let Headers { link_bytes, padding_bytes, ip_bytes, transport_bytes, security_bytes, carrier_bytes, compressed_bytes } = *headers;
    let outer = [link_bytes, padding_bytes, ip_bytes, transport_bytes, security_bytes, carrier_bytes].map(u64::from);
    let [link, padding, ip, transport, security, header] = outer;
    let opaque = if compressed_bytes > 0 { compressed_bytes.into() } else { bytes };
    [link, padding, ip, transport, security, header, 0, 0, opaque]
}

/// Adds sums to sums.
#[inline]
pub fn add_sums(sums: &mut PartSums, more: &PartSums) {
    for (sum, part) in sums.iter_mut().zip(more) {
        *sum += part;
    }
}

/// Messages of one kind in one direction.
#[derive(Debug)]
pub struct KindCount {
    /// Who sends them.
    pub from: Side,
    /// See the table `kinds`.
    pub protocol: &'static str,
    /// See the table `kinds`.
    pub kind: &'static str,
    /// See the table `kinds`.
    pub variant: &'static str,
    /// Messages.
    pub messages: u64,
    /// Smallest message, the protocol's own bytes.
    pub bytes_min: u32,
    /// Largest message.
    pub bytes_max: u32,
    /// Their bytes.
    pub parts: PartSums,
}

/// Sums of the data that one side sends.
#[derive(Debug, Default)]
pub struct Direction {
    /// Data messages, each once.
    pub data_messages: u64,
    /// Data bytes, each once.
    pub data_bytes: u64,
    /// Data bytes less those that they take on the wire, where they were compressed.
    pub data_saved_bytes: i64,
    /// Time of the first data message.
    pub data_first_ns: Option<i64>,
    /// Time of the last data message.
    pub data_last_ns: Option<i64>,
    /// Time of the receiver's acknowledgement of the last data message.
    pub data_last_ack_ns: Option<i64>,
    /// The last data message's exchange, where an acknowledgement is expected.
    pub last_data: Option<ExchangeId>,
    /// Bytes sent by this side since Time2.
    since_time2: PartSums,
    /// Bytes of the data-carrying messages.
    pub data_parts: PartSums,
    /// Bytes of frames without a message.
    pub control_parts: PartSums,
    /// Frames without a message.
    pub control_frames: u64,
    /// Bytes of the publishers' legs.
    pub publisher_parts: Option<Box<PartSums>>,
    /// Bytes that belong to no message.
    pub unassigned_parts: Option<Box<PartSums>>,
}

/// Whether the chosen number of data messages has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stop {
    #[default]
    Not,
    /// The last one is there; its acknowledgement is still to come.
    Awaiting(ExchangeId),
    Stopped,
}

/// Bytes behind the payload's in an encrypted message that still can be a data message's: Study A's messages take 10 bytes of payload and up to
/// 24 of protocol; session tickets and certificates are longer.
const ENVELOPE_BYTES: std::ops::Range<u32> = 5..128;

/// One session as sums.
#[derive(Debug)]
pub struct Session {
    /// Its row as far as it is no sum.
    pub row: crate::schema::sessions::Row,
    /// By sender: client, server.
    pub directions: [Direction; 2],
    /// Messages by kind.
    pub kinds: Vec<KindCount>,
    /// Measured times by name and kind of exchange.
    pub timings: Vec<(Timing, &'static str, Samples)>,
    /// Publications that no captured subscriber received.
    pub undelivered: u64,
    /// Sessions that published what was delivered in this one, in order.
    pub publishers: Vec<u32>,
    last_flight_from: Option<Side>,
    is_data_seen: bool,
    stop: Stop,
}

/// What the user chose about counting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choices {
    /// A session ends with this data message (and its acknowledgement).
    pub stop_after: Option<u64>,
    /// Payload of the data messages inside encrypted records.
    pub payload_size_bytes: Option<u32>,
    /// Who receives the data; what this side sends is then none.
    pub receiver: Option<Side>,
}

impl Session {
    /// A session between these endpoints, whose first frame came at `time_ns`.
    #[must_use]
    pub fn new(number: u32, client: Endpoint, server: Endpoint, frame: u64, time_ns: i64) -> Self {
        let mut row = crate::schema::sessions::Row { session: number, ..Default::default() };
        (row.client_address, row.client_port) = (client.address, client.port);
        (row.server_address, row.server_port) = (server.address, server.port);
        (row.frame_first, row.frame_last) = (frame, frame);
        (row.time1_transport_ns, row.time_last_ns) = (time_ns, time_ns);
        Self {
            row,
            directions: Default::default(),
            kinds: Vec::new(),
            timings: Vec::new(),
            undelivered: 0,
            publishers: Vec::new(),
            last_flight_from: None,
            is_data_seen: false,
            stop: Stop::Not,
        }
    }

    /// What its records hold is seen from now on, and is of `protocol`: what is known of the security protocol is its protection.
    pub fn opens(&mut self, protocol: &'static str) {
        self.row.protocol = protocol;
        let words: Vec<&str> = [self.row.version.get(), self.row.cipher_suite.get()].into_iter().flatten().collect();
        let protection = words.join(" ");
        if self.row.security.get().is_none() {
            self.row.security.set(&protection);
        }
    }

    /// Whether the chosen number of data messages has come, so that nothing more counts.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop == Stop::Stopped
    }

    /// Reads a little of everything that counting a message writes to.
    #[inline]
    #[must_use]
    pub fn touch(&self) -> u64 {
        let directions =
            self.directions.iter().fold(self.row.messages, |sum, direction| sum ^ direction.data_bytes ^ direction.control_frames);
        self.kinds.last().map_or(0, |kind| kind.messages) ^ self.timings.first().map_or(0, |(_, kind, _)| kind.len() as u64) ^ directions
    }

    fn direction(&mut self, from: Side) -> &mut Direction {
        let [client, server] = &mut self.directions;
        match from {
            Side::Client => client,
            Side::Server => server,
        }
    }

    /// Counts a message.
    #[inline]
    pub fn message(&mut self, message: &mut Message, placement: &Placement, from: Side, choices: &Choices) {
        if self.is_stopped() || self.is_behind_stop(from, placement) {
            self.row.messages_after_stop += 1;
            return;
        }
        self.row.messages += 1;
        self.row.frame_last = message.frame;
        self.row.time_last_ns = message.time_ns;
        self.row.retransmissions += u64::from(placement.is_retransmission);
        self.row.malformed += u64::from(message.malformed.get().is_some());
        if let Some(bytes) = message.field_section_bytes {
            self.row.field_section_bytes += u64::from(bytes);
            self.row.field_block_bytes += u64::from(message.option_bytes);
        }
        self.learn(message, from);
        self.count_kind(message, from);
        let parts = message.parts();
        add(&mut self.direction(from).since_time2, &parts);
        self.count_data(message, placement, from, choices, &parts);
        self.count_acknowledgement(message.time_ns, placement, from);
    }

    /// Behind the last wanted data message only what its receiver sends still counts, until the acknowledgement has passed.
    fn is_behind_stop(&self, from: Side, placement: &Placement) -> bool {
        let Stop::Awaiting(exchange) = self.stop else { return false };
        let sends_data = self.directions.get(from.index()).is_some_and(|direction| direction.last_data == Some(exchange));
        sends_data && placement.exchange != Some(exchange)
    }

    #[inline]
    fn count_data(&mut self, message: &mut Message, placement: &Placement, from: Side, choices: &Choices, parts: &Parts) {
        if choices.receiver == Some(from) {
            return;
        }
        let sent_bytes = message.uncompressed_bytes.unwrap_or(message.payload_bytes);
        let payload_bytes = if placement.is_data { Some(sent_bytes) } else { hidden_payload(message, choices) };
        let Some(payload_bytes) = payload_bytes else { return };
        let saved_bytes = message.uncompressed_bytes.map_or(0, |bytes| i64::from(bytes) - i64::from(message.payload_bytes));
        message.row.is_data = true;
        self.is_data_seen = true;
        let time_ns = message.time_ns;
        let direction = self.direction(from);
        direction.data_messages += 1;
        direction.data_bytes += u64::from(payload_bytes);
        direction.data_saved_bytes += saved_bytes;
        direction.data_first_ns.get_or_insert(time_ns);
        direction.data_last_ns = Some(time_ns);
        direction.data_last_ack_ns = None;
        direction.last_data = match placement.acknowledgement {
            Acknowledgement::Expected(exchange) => Some(exchange),
            _ => None,
        };
        add(&mut direction.data_parts, parts);
        direction.since_time2 = PartSums::default();
        if choices.stop_after == Some(direction.data_messages) {
            self.stop = direction.last_data.map_or(Stop::Stopped, Stop::Awaiting);
        }
    }

    #[inline]
    fn count_acknowledgement(&mut self, time_ns: i64, placement: &Placement, from: Side) {
        let Acknowledgement::Given(exchange) = placement.acknowledgement else { return };
        let direction = self.direction(from.peer());
        if direction.last_data == Some(exchange) && direction.data_last_ack_ns.is_none() {
            direction.data_last_ack_ns = Some(time_ns);
            direction.since_time2 = PartSums::default();
        }
        if self.stop == Stop::Awaiting(exchange) {
            self.stop = Stop::Stopped;
        }
    }

    #[inline]
    fn count_kind(&mut self, message: &Message, from: Side) {
        let row = &message.row;
        let own = row.header_bytes + row.option_bytes + row.payload_bytes + row.opaque_bytes;
        let is_same =
            |count: &KindCount| count.from == from && is_same_word(count.kind, row.kind) && is_same_word(count.variant, row.variant);
        let at = self.kinds.iter().position(|count| is_same(count) && is_same_word(count.protocol, row.protocol)).unwrap_or_else(|| {
            let (protocol, kind, variant) = (row.protocol, row.kind, row.variant);
            let (bytes_min, bytes_max) = (u32::MAX, 0);
            self.kinds.push(KindCount { from, protocol, kind, variant, messages: 0, bytes_min, bytes_max, parts: [0; 9] });
            self.kinds.len() - 1
        });
        let Some(count) = self.kinds.get_mut(at) else { return };
        count.messages += 1;
        count.bytes_min = count.bytes_min.min(own);
        count.bytes_max = count.bytes_max.max(own);
        add(&mut count.parts, &message.parts());
    }

    /// Takes from a message what the session's row tells.
    #[inline]
    fn learn(&mut self, message: &Message, from: Side) {
        let (facts, time_ns) = (&message.facts, message.time_ns);
        if facts.is_handshake {
            self.learn_handshake(message, from);
        } else if !facts.is_encrypted && self.row.time1_application_ns.is_none() {
            self.row.time1_application_ns = Some(time_ns);
            self.row.is_opening_seen = facts.is_opening;
        }
        if facts.is_opening && !self.row.is_opening_seen && !self.is_data_seen {
            self.row.time1_application_ns = Some(time_ns);
            self.row.is_opening_seen = true;
        }
        if let Some(version) = facts.version {
            self.learn_words(message, version);
        }
        if let Some(protection) = facts.protection {
            self.row.security.set(protection);
        }
        for (known, told) in [
            (&mut self.row.client_identifier, &message.row.client_identifier),
            (&mut self.row.connection_id, &message.row.connection_id),
            (&mut self.row.server_name, &message.row.server_name),
        ] {
            keep_first(known, told.get());
        }
        if let Some(authentication) = facts.authentication {
            let known = self.row.authentication.get().unwrap_or("");
            if !known.split(", ").any(|word| word == authentication) {
                self.row.authentication.more(", ").push_str(authentication);
            }
        }
    }

    fn learn_words(&mut self, message: &Message, version: &'static str) {
        if self.row.version.get() != Some(version) {
            self.row.version.set(version);
        }
        let (row, told) = (&mut self.row, &message.row);
        keep_last(&mut row.cipher_suite, told.cipher_suite.get());
        if from_server(message) {
            keep_last(&mut row.alpn, told.alpn.get());
        }
    }

    fn learn_handshake(&mut self, message: &Message, from: Side) {
        let time_ns = message.time_ns;
        let first_ns = *self.row.time1_security_ns.get_or_insert(time_ns);
        self.row.handshake_bytes += u64::from(message.frame_bytes);
        if !message.facts.is_of_flight {
            return;
        }
        if self.last_flight_from != Some(from) {
            self.row.handshake_flights += 1;
            self.last_flight_from = Some(from);
        }
        self.row.handshake_ns = Some(time_ns - first_ns);
    }

    /// Counts a frame, or a part of one, that carries no message: SYN, bare ACK, retransmission.
    pub fn control(&mut self, from: Side, parts: &PartSums, frames: u64, at: (u64, i64)) {
        if self.is_stopped() {
            return;
        }
        self.row.control_frames += frames;
        (self.row.frame_last, self.row.time_last_ns) = (self.row.frame_last.max(at.0), self.row.time_last_ns.max(at.1));
        let direction = self.direction(from);
        direction.control_frames += frames;
        add_sums(&mut direction.control_parts, parts);
        add_sums(&mut direction.since_time2, parts);
    }

    /// Counts bytes of the stream that belong to no message.
    pub fn unassigned(&mut self, from: Side, parts: &PartSums) {
        if self.is_stopped() {
            return;
        }
        let direction = self.direction(from);
        add_sums(direction.unassigned_parts.get_or_insert_default(), parts);
        add_sums(&mut direction.since_time2, parts);
    }

    /// Adds a publisher's leg of a message delivered by `from`. What a session publishes to itself is in its own bytes already.
    pub fn publisher_leg(&mut self, from: Side, publisher: u32, parts: &Parts) {
        if self.is_stopped() || publisher == self.row.session {
            return;
        }
        if let Err(at) = self.publishers.binary_search(&publisher) {
            self.publishers.insert(at, publisher);
        }
        add(self.direction(from).publisher_parts.get_or_insert_default(), parts);
    }

    /// Bytes by which an MQTT session was opened.
    pub(super) fn opening_parts(&self) -> impl Iterator<Item = &PartSums> {
        self.kinds.iter().filter(|count| matches!(count.kind, "CONNECT" | "CONNACK")).map(|count| &count.parts)
    }

    /// Adds more bytes of the publishers' legs.
    pub(super) fn add_publishers(&mut self, parts: &PartSums) {
        if let Some(sums) = self.directions.iter_mut().find_map(|direction| direction.publisher_parts.as_deref_mut()) {
            add_sums(sums, parts);
        }
    }

    /// Adds a measured time.
    pub fn sample(&mut self, timing: Timing, kind: &'static str, time_ns: i64, is_retransmitted: bool) {
        if self.is_stopped() {
            return;
        }
        let at = self.timings.iter().position(|(known, of, _)| *known == timing && is_same_word(of, kind)).unwrap_or_else(|| {
            self.timings.reserve_exact(1);
            self.timings.push((timing, kind, Samples::default()));
            self.timings.len() - 1
        });
        let Some((_, _, samples)) = self.timings.get_mut(at) else { return };
        if is_retransmitted {
            samples.retransmitted += 1;
        } else {
            samples.add(time_ns);
        }
    }

    /// Bytes sent by `from` until Time2: all of them but those since.
    #[must_use]
    pub fn received_until_time2(&self, from: Side) -> PartSums {
        let Some(direction) = self.directions.get(from.index()) else { return PartSums::default() };
        let mut sums = direction.control_parts;
        for more in self.kinds.iter().filter(|kind| kind.from == from).map(|kind| &kind.parts).chain(direction.unassigned_parts.as_deref())
        {
            add_sums(&mut sums, more);
        }
        for (sum, since) in sums.iter_mut().zip(direction.since_time2) {
            *sum -= since;
        }
        sums
    }

    /// Counts the end of an exchange.
    pub fn ended(&mut self, outcome: &'static str) {
        match outcome {
            "complete" => self.row.exchanges_complete += 1,
            "unanswered" => self.row.exchanges_unanswered += 1,
            "reset" => self.row.exchanges_reset += 1,
            _ => {}
        }
    }
}

/// Whether two words of our tables are the same: as a rule they are even one and the same text, which is quicker to see.
#[inline]
fn is_same_word(one: &'static str, other: &'static str) -> bool {
    std::ptr::eq(one, other) || one == other
}

fn from_server(message: &Message) -> bool {
    message.direction == Side::Server.direction()
}

fn keep_first(known: &mut crate::schema::Text, told: Option<&str>) {
    if let (None, Some(told)) = (known.get(), told) {
        known.set(told);
    }
}

fn keep_last(known: &mut crate::schema::Text, told: Option<&str>) {
    if let Some(told) = told {
        known.set(told);
    }
}

/// The payload of an encrypted message, where the user said how large the data messages' is and the record has room for it and its envelope.
fn hidden_payload(message: &Message, choices: &Choices) -> Option<u32> {
    let payload_bytes = choices.payload_size_bytes?;
    let facts = &message.facts;
    let inside = message.plaintext_bytes.filter(|_| facts.is_encrypted && !facts.is_handshake)?;
    inside.checked_sub(payload_bytes).filter(|envelope| ENVELOPE_BYTES.contains(envelope)).map(|_| payload_bytes)
}
