//! However many threads share the streams of a capture, the tables are those of one thread that takes packet by packet.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a test that fails should stop")]

use std::fmt::Debug;
use std::io::Cursor;
use std::path::Path;

use pcapstat_core::capture::Input;
use pcapstat_core::pipeline::{self, NoRows, Options, Outcome};

const BROKER: ([u8; 4], u16) = ([10, 0, 0, 1], 1883);
const GROUP: ([u8; 4], u16) = ([224, 0, 1, 187], 5683);
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

type Endpoint = ([u8; 4], u16);

/// A pcap under way, of raw IPv4 packets, a millisecond apart.
struct Capture {
    bytes: Vec<u8>,
    frames: u32,
}

impl Capture {
    fn new() -> Self {
        let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101].map(u32::to_le_bytes);
        Self { bytes: header.concat(), frames: 0 }
    }

    fn packet(&mut self, protocol: u8, from: Endpoint, to: Endpoint, header: &[u8], payload: &[u8]) {
        self.frames += 1;
        let length = (20 + header.len() + payload.len()) as u16;
        let [length_high, length_low] = length.to_be_bytes();
        let [high, low] = (self.frames as u16).to_be_bytes();
        let ip = [0x45, 0, length_high, length_low, high, low, 0, 0, 64, protocol, 0, 0];
        let record = [self.frames / 1000, self.frames % 1000 * 1000, length.into(), length.into()].map(u32::to_le_bytes).concat();
        self.bytes.extend([&record, &ip[..], &from.0, &to.0, header, payload].concat());
    }

    fn datagram(&mut self, from: Endpoint, to: Endpoint, payload: &[u8]) {
        let header = [from.1, to.1, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
        self.packet(17, from, to, &header, payload);
    }
}

/// A client of the broker, with the sequence numbers of both sides.
struct Connection {
    client: Endpoint,
    sent: [u32; 2],
}

impl Connection {
    fn open(capture: &mut Capture, number: u16) -> Self {
        let mut connection = Self { client: ([10, 0, 1, (number % 250) as u8], 20_000 + number), sent: [7, 9] };
        connection.segment(capture, 0, SYN, &[]);
        connection.segment(capture, 1, SYN | ACK, &[]);
        connection.segment(capture, 0, ACK, b"\x10\x10\0\x04MQTT\x05\x02\0\x3c\0\0\x03abc");
        connection.segment(capture, 1, ACK, b"\x20\x03\0\0\0");
        connection
    }

    fn segment(&mut self, capture: &mut Capture, side: usize, flags: u8, payload: &[u8]) {
        let ends = [self.client, BROKER];
        let (from, to) = (ends[side], ends[1 - side]);
        let ports = [from.1, to.1].map(u16::to_be_bytes).concat();
        let numbers = [self.sent[side], self.sent[1 - side]].map(u32::to_be_bytes).concat();
        let header = [&ports, &numbers, &[0x50, flags, 0xff, 0xff, 0, 0, 0, 0][..]].concat();
        self.sent[side] += payload.len() as u32 + u32::from(flags & SYN != 0);
        capture.packet(6, from, to, &header, payload);
    }
}

fn publish(turn: u32, topic: u8, quality: u8) -> Vec<u8> {
    let identifier: &[u8] = &if quality == 0 { vec![] } else { (turn as u16 | 1).to_be_bytes().to_vec() };
    let body = [&[0, 2, b't', b'0' + topic][..], identifier, &[0], &turn.to_be_bytes()].concat();
    [&[0x30 | quality << 1, body.len() as u8][..], &body].concat()
}

/// Publishers whose messages the broker refuses at times, before they send them again, and go to none, one or some of the subscribers; clients of a CoAP server; a group's members that answer a request to it; some
/// who speak to the broker, and no MQTT.
fn capture() -> Vec<u8> {
    let mut capture = Capture::new();
    let mut publishers: Vec<Connection> = (0..23).map(|number| Connection::open(&mut capture, number)).collect();
    let mut subscribers: Vec<Connection> = (100..107).map(|number| Connection::open(&mut capture, number)).collect();
    for turn in 0..11_000_u32 {
        let dice = turn.wrapping_mul(2_654_435_761) >> 16;
        let (publisher, topic) = ((dice % 23) as usize, (dice % 5) as u8);
        let (message, identifier) = (publish(turn, topic, 1), (turn as u16 | 1).to_be_bytes());
        if dice % 7 == 0 {
            publishers[publisher].segment(&mut capture, 0, ACK, &message);
            publishers[publisher].segment(&mut capture, 1, ACK, &[&[0x40, 3][..], &identifier, &[0x87]].concat());
        }
        publishers[publisher].segment(&mut capture, 0, ACK, &message);
        for at in 0..(dice % 4) as usize {
            subscribers[(topic as usize + at) % 7].segment(&mut capture, 1, ACK, &publish(turn, topic, 0));
        }
        publishers[publisher].segment(&mut capture, 1, ACK, &[&[0x40, 2][..], &identifier].concat());
        let (client, id) = (([10, 0, 2, (dice % 200) as u8], 40_000), (turn as u16).to_be_bytes());
        capture.datagram(client, ([10, 0, 0, 2], 5683), &[&[0x41, 1][..], &id, &[7, 0xb1, b'a']].concat());
        capture.datagram(([10, 0, 0, 2], 5683), client, &[&[0x61, 0x45][..], &id, &[7, 0xff, b'1']].concat());
        if turn % 500 == 0 {
            group_request(&mut capture, turn as u16);
            stranger(&mut capture, (turn / 500) as u16);
        }
    }
    capture.bytes
}

fn stranger(capture: &mut Capture, number: u16) {
    let mut connection = Connection { client: ([10, 0, 5, 250 - number as u8], 45_000 + number), sent: [7, 9] };
    connection.segment(capture, 0, SYN, &[]);
    connection.segment(capture, 0, ACK, b"HELO");
}

fn group_request(capture: &mut Capture, turn: u16) {
    let (requester, id) = (([10, 0, 3, 1], 50_000 + turn / 500), turn.to_be_bytes());
    capture.datagram(requester, GROUP, &[&[0x51, 1][..], &id, &[9, 0xb1, b'g']].concat());
    for member in 1..4 {
        capture.datagram(([10, 0, 4, member], 5683), requester, &[&[0x51, 0x45][..], &id, &[9, 0xff, b'2']].concat());
    }
}

fn text(rows: impl Iterator<Item = impl Debug>) -> String {
    rows.map(|row| format!("{row:?}\n")).collect()
}

fn tables(outcome: &Outcome) -> [String; 6] {
    let sums = format!("{} {:?} {:?} {:?}", outcome.messages, outcome.others, outcome.unmatched_ports, outcome.sessions.total());
    [
        text(outcome.session_rows()),
        text(outcome.direction_rows()),
        text(outcome.kind_rows()),
        text(outcome.timing_rows()),
        text(outcome.note_rows()),
        sums,
    ]
}

fn read(input: Input, threads: u32) -> Outcome {
    let options = Options { threads: Some(threads), ..Options::default() };
    pipeline::run(vec![input], &options, &mut NoRows).unwrap()
}

#[test]
fn tables_of_a_large_capture_do_not_depend_on_the_threads() {
    let bytes = capture();
    let read = |threads| read(Input::Stream("capture".to_owned(), Box::new(Cursor::new(bytes.clone()))), threads);
    let one = read(1);
    let expected = tables(&one);

    // what makes it a test of links: most sessions are publishers and subscribers, each of the others is of one client or one group
    assert_eq!(23 + 7 + 200 + 22, one.sessions.len());
    assert!(expected[3].contains("\"delay\"") && expected[4].contains("undelivered") && expected[4].contains("not-accepted"));
    assert!(expected[4].contains("unlike-port"));
    for threads in [2, 3, 4] {
        for (expected, found) in expected.iter().zip(tables(&read(threads))) {
            assert!(*expected == found, "{threads} threads");
        }
    }
}

#[test]
fn tables_of_recorded_captures_do_not_depend_on_the_threads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../captures");
    let paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let captures: Vec<_> = paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "pcapng")).collect();

    assert!(captures.len() > 20);
    for path in captures {
        let expected = tables(&read(Input::Path(path.clone()), 1));
        for threads in [2, 3] {
            assert!(expected == tables(&read(Input::Path(path.clone()), threads)), "{} with {threads} threads", path.display());
        }
    }
}
