//! What is counted of one session: integers only.

use super::bytes::{add, add_sums, PartSums};
use super::direction::Direction;
use super::entries::{counted, Before, Beginning, Control, Count, FieldSection, Is, Why};
use super::kinds::{KindCount, KindId, Kinds};
use super::samples::{Measured, Samples};
use crate::exchanges::{Acknowledgement, Event, Outcome, Sample};
use crate::message::{Parts, Side};
use crate::packet::Headers;

/// The parts of bytes that are no message: headers, and the rest as opaque.
#[inline]
#[must_use]
pub fn without_message<T: From<u32>>(headers: &Headers, bytes: T) -> [T; 9] {
    let Headers { link_bytes, padding_bytes, ip_bytes, transport_bytes, security_bytes, carrier_bytes, compressed_bytes } = *headers;
    let outer = [link_bytes, padding_bytes, ip_bytes, transport_bytes, security_bytes, carrier_bytes].map(T::from);
    let [link, padding, ip, transport, security, header] = outer;
    let opaque = if compressed_bytes > 0 { T::from(compressed_bytes) } else { bytes };
    [link, padding, ip, transport, security, header, T::from(0), T::from(0), opaque]
}

/// Whether the chosen number of data messages has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stop {
    #[default]
    Not,
    /// The last one is there, of this exchange and sent from this side; its acknowledgement is still to come.
    Awaiting(u64, Side),
    Stopped,
}

/// How far the handshake that opens the session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Handshake {
    /// No flight of the second side yet.
    #[default]
    Not,
    /// Both sides have sent a flight.
    Answered,
    /// The client has sent something else since then: what follows is another handshake, such as a renegotiation.
    Over,
}

/// Bytes behind the payload's in an encrypted message that still can be a data message's: Study A's messages take 10 bytes of payload and up to
/// 24 of protocol; session tickets and certificates are longer.
const ENVELOPE_BYTES: std::ops::Range<u32> = 5..128;

/// One session as sums.
#[derive(Debug)]
pub struct Session {
    running: Running,
    lists: Lists,
    /// Its row as far as it is no sum; what is running is in it when the capture has ended.
    pub row: crate::schema::sessions::Row,
    /// By sender: client, server.
    pub directions: [Direction; 2],
    /// Publications that no captured subscriber received.
    pub undelivered: u64,
    /// Exchanges of which nobody can tell what answers them.
    pub ambiguous: u64,
    /// Sessions that published what was delivered in this one, in order.
    pub publishers: Vec<u32>,
    last_flight_from: Option<Side>,
    /// Whether what its records hold was opened, so that its version is that of what they hold.
    pub(super) is_opened: bool,
}

/// What nearly every message reads and changes, in one line of the processor's cache: a session's next message finds none of it there where sessions
/// are many.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Running {
    messages: u64,
    frame_last: u64,
    time_last_ns: i64,
    exchanges_complete: u64,
    stop: Stop,
    opening: Handshake,
    /// Whether there was a message of the application.
    is_begun: bool,
    is_opening_seen: bool,
    is_data_seen: bool,
}

impl Running {
    /// It goes on up to this frame.
    #[inline]
    fn reach(&mut self, frame: u64, time_ns: i64) {
        self.frame_last = self.frame_last.max(frame);
        self.time_last_ns = self.time_last_ns.max(time_ns);
    }
}

/// What is counted and measured by kind, in another line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Lists {
    /// Messages by kind.
    kinds: Vec<KindCount>,
    /// What was measured.
    measured: Vec<Measured>,
    /// Where messages of each side were counted last.
    counted: [Latest; 2],
    /// Where the times went that messages of each side told last.
    sampled: [Latest; 2],
}

/// The two places in a list that were used last, the newest first: as a rule the next one is among them.
#[derive(Debug, Default)]
struct Latest([u8; 2]);

impl Latest {
    /// The value of a list that is wanted, which is put there where there is none.
    #[inline]
    fn value<'l, T>(&mut self, list: &'l mut Vec<T>, is_wanted: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> Option<&'l mut T> {
        let [last, before] = self.0;
        let is_at = |at: u8| list.get(usize::from(at)).is_some_and(&is_wanted);
        let mut at = usize::from(last);
        if !is_at(last) {
            at = if is_at(before) { before.into() } else { place_of(list, is_wanted, make) };
            self.0 = u8::try_from(at).map_or(self.0, |at| [at, last]);
        }
        list.get_mut(at)
    }

    /// Reads a little of these of a list.
    #[inline]
    fn touch<T>(&self, list: &[T], read: impl Fn(&T) -> u64) -> u64 {
        let [last, before] = self.0.map(|at| list.get(usize::from(at)).map_or(0, &read));
        last ^ before
    }
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

impl Choices {
    /// Data bytes that a message brings; none where it counts for nothing.
    #[inline]
    #[must_use]
    pub fn data_bytes(&self, count: &Count, from: Side) -> Option<u32> {
        if self.receiver == Some(from) {
            return None;
        }
        if count.is.has(Is::DATA) {
            Some(count.sent_bytes)
        } else {
            hidden_payload(count, self)
        }
    }
}

impl Session {
    /// A session that begins.
    #[must_use]
    pub(crate) fn new(number: u32, begins: &Beginning) -> Self {
        let [frame_first, frame_last] = begins.frames;
        let row = crate::schema::sessions::Row {
            session: number,
            client_address: begins.client.address,
            client_port: begins.client.port,
            server_address: begins.server.address,
            server_port: begins.server.port,
            stream: begins.stream,
            transport: begins.transport,
            protocol: begins.protocol,
            found_by: begins.found_by,
            file: begins.file.clone(),
            frame_first,
            time1_transport_ns: begins.time_ns,
            ..Default::default()
        };
        Self {
            running: Running { frame_last, time_last_ns: begins.time_ns, ..Running::default() },
            lists: Lists::default(),
            row,
            directions: Default::default(),
            undelivered: 0,
            ambiguous: 0,
            publishers: Vec::new(),
            last_flight_from: None,
            is_opened: false,
        }
    }

    /// Whether the chosen number of data messages has come, so that nothing more counts.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.running.stop == Stop::Stopped
    }

    /// Reads a little of everything here that counting a message writes to.
    #[inline]
    #[must_use]
    pub(crate) fn touch(&self, from: Side) -> u64 {
        let data = self.directions.get(from.index()).map_or(0, |direction| direction.data.bytes);
        self.running.messages ^ data ^ self.lists.kinds.len() as u64
    }

    /// The same of what counting a frame without a message writes to.
    #[inline]
    #[must_use]
    pub(crate) fn touch_control(&self, from: Side) -> u64 {
        self.directions.get(from.index()).map_or(0, |direction| direction.control_frames)
    }

    /// The same of what it points to.
    #[inline]
    #[must_use]
    pub(crate) fn touch_lists(&self, from: Side) -> u64 {
        let Lists { kinds, counted, .. } = &self.lists;
        let of_kinds = counted.get(from.index()).map_or(0, |latest| latest.touch(kinds, |kind| kind.bytes_max.into()));
        of_kinds ^ self.touch_measured(from, |measured| measured.samples.retransmitted.into())
    }

    /// The same of what that points to.
    #[inline]
    #[must_use]
    pub(crate) fn touch_samples(&self, from: Side) -> u64 {
        self.touch_measured(from, |measured| measured.samples.touch())
    }

    #[inline]
    fn touch_measured(&self, from: Side, read: impl Fn(&Measured) -> u64) -> u64 {
        let Lists { measured, sampled, .. } = &self.lists;
        sampled.get(from.index()).map_or(0, |latest| latest.touch(measured, read))
    }

    fn direction(&mut self, from: Side) -> &mut Direction {
        let [client, server] = &mut self.directions;
        match from {
            Side::Client => client,
            Side::Server => server,
        }
    }

    /// Counts a message, after what exchanges tell of it. Returns whether it counts as data.
    #[inline]
    pub(crate) fn message(&mut self, count: &Count, from: Side, choices: &Choices) -> bool {
        if self.is_stopped() || self.is_behind_stop(from, count.exchange) {
            self.row.messages_after_stop += 1;
            return false;
        }
        self.running.messages += 1;
        // what stands behind a gap is counted late
        self.running.reach(count.frame, count.time_ns);
        if count.is.has(Is::RETRANSMISSION | Is::MALFORMED) {
            self.row.retransmissions += u64::from(count.is.has(Is::RETRANSMISSION));
            self.row.malformed += u64::from(count.is.has(Is::MALFORMED));
        }
        self.learn(count, from);
        let is_data = self.count_data(count, from, choices);
        self.count_kind(count, from, is_data);
        if !is_data {
            self.direction(from).since().into_iter().for_each(|since| since.add(&count.parts));
        }
        self.count_acknowledgement(count, from);
        is_data
    }

    /// Whether an exchange began behind that of the last wanted data message.
    pub(crate) const fn is_late(&self, exchange: u64) -> bool {
        matches!(self.running.stop, Stop::Awaiting(last, _) if exchange > last)
    }

    /// Behind the last wanted data message only what its receiver sends still counts, but for later exchanges, until the acknowledgement has passed.
    fn is_behind_stop(&self, from: Side, of: u64) -> bool {
        self.is_late(of) || matches!(self.running.stop, Stop::Awaiting(exchange, sender) if sender == from && of != exchange)
    }

    #[inline]
    fn count_data(&mut self, count: &Count, from: Side, choices: &Choices) -> bool {
        let Some(payload_bytes) = choices.data_bytes(count, from) else { return false };
        let [.., wire_bytes, _] = count.parts;
        self.running.is_data_seen = true;
        let direction = self.direction(from);
        if count.sent_bytes != wire_bytes {
            direction.data_saved_bytes += i64::from(count.sent_bytes) - i64::from(wire_bytes);
        }
        direction.restart();
        let data = &mut direction.data;
        data.messages += 1;
        data.bytes += u64::from(payload_bytes);
        let [first_ns, _] = data.times_ns;
        data.times_ns = [if data.messages == 1 { count.time_ns } else { first_ns }, count.time_ns];
        data.last_ack_ns = None;
        data.last = if count.acknowledgement == Acknowledgement::Expected { count.exchange } else { 0 };
        if choices.stop_after == Some(data.messages) {
            self.running.stop = if data.is_ack_expected() { Stop::Awaiting(data.last, from) } else { Stop::Stopped };
        }
        true
    }

    #[inline]
    fn count_acknowledgement(&mut self, count: &Count, from: Side) {
        let Count { acknowledgement: Acknowledgement::Given, exchange, .. } = *count else { return };
        let direction = self.direction(from.peer());
        if direction.data.is_ack_expected() && direction.data.last == exchange && direction.data.last_ack_ns.is_none() {
            direction.data.last_ack_ns = Some(count.time_ns);
            direction.restart();
        }
        if self.running.stop == Stop::Awaiting(exchange, from.peer()) {
            self.running.stop = Stop::Stopped;
        }
    }

    #[inline]
    fn count_kind(&mut self, count: &Count, from: Side, is_data: bool) {
        let Lists { kinds, counted, .. } = &mut self.lists;
        let Some(latest) = counted.get_mut(from.index()) else { return };
        let is_of = |known: &KindCount| known.is_of(count.kind, from) && known.is_data == is_data;
        if let Some(sums) = latest.value(kinds, is_of, || KindCount::new(count.kind, from, is_data)) {
            sums.add(&count.parts);
        }
    }

    /// Takes from a message what the session's row tells of times.
    #[inline]
    fn learn(&mut self, count: &Count, from: Side) {
        if count.is.has(Is::HANDSHAKE) {
            self.learn_handshake(count, from);
        } else {
            if self.running.opening == Handshake::Answered && from == Side::Client {
                self.running.opening = Handshake::Over;
            }
            if !count.is.has(Is::ENCRYPTED) && !self.running.is_begun {
                self.running.is_begun = true;
                self.row.time1_application_ns = Some(count.time_ns);
                self.running.is_opening_seen = count.is.has(Is::OPENING);
            }
        }
        if count.is.has(Is::OPENING) && !self.running.is_opening_seen && !self.running.is_data_seen {
            self.row.time1_application_ns = Some(count.time_ns);
            self.running.is_begun = true;
            self.running.is_opening_seen = true;
        }
    }

    fn learn_handshake(&mut self, count: &Count, from: Side) {
        let first_ns = *self.row.time1_security_ns.get_or_insert(count.time_ns);
        self.row.handshake_bytes += count.parts.iter().map(|&part| u64::from(part)).sum::<u64>();
        if !count.is.has(Is::OF_FLIGHT) || self.running.opening == Handshake::Over {
            return;
        }
        if self.last_flight_from != Some(from) {
            self.row.handshake_flights += 1;
            self.last_flight_from = Some(from);
        }
        if self.row.handshake_flights > 1 {
            self.running.opening = Handshake::Answered;
        }
        self.row.handshake_ns = Some(count.time_ns - first_ns);
    }

    /// Counts a frame, or a part of one, that carries no message: SYN, bare ACK, retransmission.
    #[inline]
    pub(crate) fn control(&mut self, from: Side, control: &Control) {
        match control.why {
            Why::Empty => {}
            Why::Retransmission => self.row.tcp_retransmissions += 1,
            Why::CapturedTwice => self.row.captured_twice += 1,
            Why::LinkRetransmission => self.row.link_retransmissions += 1,
        }
        if self.is_stopped() {
            return;
        }
        self.running.reach(control.frame, control.time_ns);
        let direction = self.direction(from);
        direction.control_frames += u64::from(control.frames);
        direction.control_parts.add(&control.parts);
        direction.since().into_iter().for_each(|since| since.add(&control.parts));
    }

    /// Its stream has ended with this frame.
    pub(crate) fn end_of_stream(&mut self, frame: u64, time_ns: i64) {
        if !self.is_stopped() {
            self.running.reach(frame, time_ns);
        }
    }

    /// Goes on in another of Wireshark's streams: a peer's address changed.
    pub(crate) fn moved(&mut self, stream: u32) {
        self.row.moved_streams.push(stream.into());
    }

    /// Counts a segment that arrived behind later ones.
    pub(crate) fn out_of_order(&mut self) {
        self.row.tcp_out_of_order += 1;
    }

    /// Counts frames without a message that came before the session.
    pub(crate) fn before(&mut self, from: Side, before: &Before) {
        self.row.tcp_retransmissions += before.retransmissions;
        self.row.captured_twice += before.captured_twice;
        self.row.link_retransmissions += before.link_retransmissions;
        let direction = self.direction(from);
        direction.control_frames += before.frames;
        direction.control_parts.add_sums(&before.parts);
        direction.since().into_iter().for_each(|since| since.add_sums(&before.parts));
    }

    /// Counts header fields of a message, where that counts.
    pub(crate) fn field_section(&mut self, from: Side, section: &FieldSection) {
        if self.is_stopped() || self.is_behind_stop(from, section.exchange) {
            return;
        }
        self.row.field_section_bytes += u64::from(section.section_bytes);
        self.row.field_block_bytes += u64::from(section.block_bytes);
    }

    /// Counts bytes of the stream that belong to no message, and how many are not in the capture.
    pub(crate) fn unassigned(&mut self, from: Side, parts: &PartSums, missing: u64) {
        self.row.lost_bytes += missing;
        if self.is_stopped() {
            return;
        }
        let direction = self.direction(from);
        add_sums(direction.unassigned_parts.get_or_insert_default(), parts);
        direction.since().into_iter().for_each(|since| since.add_sums(parts));
    }

    /// Adds a publisher's leg of a message delivered by `from`. What a session publishes to itself is in its own bytes already.
    fn publisher_leg(&mut self, from: Side, publisher: u32, parts: &Parts) {
        if self.is_stopped() || publisher == self.row.session {
            return;
        }
        if let Err(at) = self.publishers.binary_search(&publisher) {
            self.publishers.insert(at, publisher);
        }
        add(self.direction(from).publisher_parts.get_or_insert_default(), parts);
    }

    /// Its kinds have other numbers from now on: `numbers` by those until now.
    pub(super) fn renumber_kinds(&mut self, numbers: &[KindId]) {
        self.lists.kinds.iter_mut().for_each(|count| count.kind = count.kind.among(numbers));
    }

    /// The capture has ended, and sessions have other numbers from now on.
    pub(super) fn close(&mut self, number: impl Fn(u32) -> u32) {
        let Running { messages, frame_last, time_last_ns, exchanges_complete, is_opening_seen, .. } = self.running;
        let row = &mut self.row;
        (row.messages, row.exchanges_complete, row.is_opening_seen) = (messages, exchanges_complete, is_opening_seen);
        (row.frame_last, row.time_last_ns) = (frame_last, time_last_ns);
        row.control_frames = self.directions.iter().map(|direction| direction.control_frames).sum();
        row.session = number(row.session);
        self.publishers.iter_mut().for_each(|publisher| *publisher = number(*publisher));
        self.publishers.sort_unstable();
    }

    /// Bytes by which an MQTT session was opened.
    pub(crate) fn opening_parts<'a>(&'a self, kinds: &'a Kinds) -> impl Iterator<Item = PartSums> + 'a {
        let is_opening = |count: &&KindCount| kinds.get(count.kind).is_some_and(|kind| matches!(kind.kind, "CONNECT" | "CONNACK"));
        self.lists.kinds.iter().filter(is_opening).map(|count| count.parts.get())
    }

    /// Adds more bytes of the publishers' legs.
    pub(crate) fn add_publishers(&mut self, parts: &PartSums) {
        if let Some(sums) = self.directions.iter_mut().find_map(|direction| direction.publisher_parts.as_deref_mut()) {
            add_sums(sums, parts);
        }
    }

    /// Adds a measured time that a message from this side tells.
    #[inline]
    fn sample(&mut self, sample: &Sample, from: Side) {
        let Sample { timing: Some(timing), kind, time_ns, is_retransmitted } = *sample else { return };
        if self.is_stopped() {
            return;
        }
        let Lists { measured, sampled, .. } = &mut self.lists;
        let Some(latest) = sampled.get_mut(from.index()) else { return };
        let make = || Measured { timing, kind, samples: Samples::default() };
        let Some(Measured { samples, .. }) = latest.value(measured, |known| known.is_of(timing, kind), make) else { return };
        if is_retransmitted {
            samples.retransmitted += 1;
        } else {
            samples.add(time_ns);
        }
    }

    /// What was measured, with the samples.
    pub fn measured(&self) -> &[Measured] {
        &self.lists.measured
    }

    /// Bytes of the messages by which `from` sends data.
    #[must_use]
    pub fn data_parts(&self, from: Side) -> PartSums {
        self.parts_of(|kind| kind.from == from && kind.is_data)
    }

    /// Bytes of the messages of some kinds.
    pub(super) fn parts_of(&self, is_one: impl Fn(&KindCount) -> bool) -> PartSums {
        let mut sums = PartSums::default();
        self.lists.kinds.iter().filter(|kind| is_one(kind)).for_each(|kind| add_sums(&mut sums, &kind.parts.get()));
        sums
    }

    /// Messages by kind, with data or not.
    pub fn kinds(&self) -> impl Iterator<Item = (&KindCount, Option<&KindCount>)> {
        let kinds = &self.lists.kinds;
        let others = |at: usize, count: &KindCount| {
            let (before, behind) = (kinds.get(..at), kinds.get(at + 1..));
            [before, behind].map(|kinds| kinds.into_iter().flatten().find(|other| other.is_of(count.kind, count.from)))
        };
        kinds.iter().enumerate().filter_map(move |(at, count)| match others(at, count) {
            [None, behind] => Some((count, behind)),
            [Some(_), _] => None,
        })
    }

    /// Bytes sent by `from` until Time2: all of them but those since; none where it sends no data.
    #[must_use]
    pub fn received_until_time2(&self, from: Side) -> PartSums {
        let direction = self.directions.get(from.index()).filter(|direction| direction.data.messages > 0);
        let Some(direction) = direction else { return PartSums::default() };
        let mut sums = direction.control_parts.get();
        add_sums(&mut sums, &self.parts_of(|kind| kind.from == from));
        add_sums(&mut sums, direction.unassigned_parts.as_deref().unwrap_or(&[0; 9]));
        for (sum, since) in sums.iter_mut().zip(direction.since_time2.get()) {
            *sum -= since;
        }
        sums
    }

    /// Takes in what the exchanges report, or TCP, of a message from this side.
    #[inline]
    pub(crate) fn take(&mut self, event: &Event, from: Side) {
        match *event {
            Event::Sample { ref sample, .. } => self.sample(sample, from),
            Event::Ended { number, outcome, .. } => self.ended(counted(number), outcome),
            Event::Undelivered { publications, .. } => self.undelivered += publications,
            Event::PublisherLeg { from: sender, publisher, ref parts, .. } => self.publisher_leg(sender, publisher, parts),
        }
    }

    /// Counts the end of an exchange, unless that is behind the last one that counts.
    #[inline]
    const fn ended(&mut self, exchange: u64, outcome: Outcome) {
        if self.is_late(exchange) {
            return;
        }
        match outcome {
            Outcome::Complete => self.running.exchanges_complete += 1,
            Outcome::Unanswered => self.row.exchanges_unanswered += 1,
            Outcome::Reset => self.row.exchanges_reset += 1,
            Outcome::Ambiguous => self.ambiguous += 1,
            Outcome::Other => {}
        }
    }
}

/// Where in a list the one is that is wanted, which is put there where there is none.
fn place_of<T>(list: &mut Vec<T>, is_wanted: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> usize {
    list.iter().position(is_wanted).unwrap_or_else(|| {
        grow(list);
        list.push(make());
        list.len() - 1
    })
}

/// Makes room for a few more: sessions are many, and have few kinds of messages and times each.
fn grow<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact(4);
    }
}

/// The payload of an encrypted message, where the user said how large the data messages' is and the record has room for it and its envelope.
fn hidden_payload(count: &Count, choices: &Choices) -> Option<u32> {
    let payload_bytes = choices.payload_size_bytes?;
    count.inside_bytes.checked_sub(payload_bytes).filter(|envelope| ENVELOPE_BYTES.contains(envelope)).map(|_| payload_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_32_bits_without_a_message_are_counted() {
        let headers = Headers { link_bytes: 14, ip_bytes: 20, ..Headers::default() };

        assert_eq!([14, 0, 20, 0, 0, 0, 0, 0, 5_000_000_000_u64], without_message(&headers, 5_000_000_000));
    }
}
