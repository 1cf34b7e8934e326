//! Builders of records and hellos, and what every decoder owes, for the tests of TLS and DTLS.

use crate::message::{Message, Side};
use crate::protocols::{Decoder, Decoding, Input, Protocol, Step};

/// `bytes` behind their length in `width` bytes.
pub fn vector(width: usize, bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_be_bytes();
    [&length[4 - width..], bytes].concat()
}

/// An extension.
pub fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector(2, data)].concat()
}

/// A ClientHello's body; a cookie where `cookie` is there.
pub fn client_hello(random: u8, session_id: &[u8], cookie: Option<&[u8]>, extensions: &[Vec<u8>]) -> Vec<u8> {
    let version = if cookie.is_some() { [0xfe, 0xfd] } else { [3, 3] };
    let cookie = cookie.map(|cookie| vector(1, cookie)).unwrap_or_default();
    [
        &version[..],
        &[random; 32],
        &vector(1, session_id),
        &cookie,
        &vector(2, &[0x13, 0x01, 0xc0, 0x2b]),
        &vector(1, &[0]),
        &vector(2, &extensions.concat()),
    ]
    .concat()
}

/// A ServerHello's body.
pub fn server_hello(version: u16, session_id: &[u8], suite: u16, extensions: &[Vec<u8>]) -> Vec<u8> {
    [&version.to_be_bytes()[..], &[9; 32], &vector(1, session_id), &suite.to_be_bytes(), &[0], &vector(2, &extensions.concat())].concat()
}

/// The decoder's answer and message for these bytes.
pub fn decode(decoder: &mut dyn Decoder, bytes: &[u8], from: Side) -> (Step, Message) {
    let mut message = Message { wants_text: true, ..Message::default() };
    let step = decoder.next(Input::whole(bytes), from, &mut message);
    (step, message)
}

/// The messages in `bytes`, which hold nothing else.
pub fn decode_all(decoder: &mut dyn Decoder, bytes: &[u8], from: Side) -> Vec<Message> {
    let (mut messages, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let (step, message) = decode(decoder, &bytes[at..], from);
        let Step::Message { len } = step else { panic!("{step:?} at {at}") };
        at += len;
        messages.push(message);
    }
    messages
}

/// Lets a decoder loose on bytes of which only some are at hand, and checks each answer.
pub fn assert_answers_keep_the_contract(protocol: &Protocol, bytes: &[u8], cut: usize) {
    let mut decoder = (protocol.decoder)(&Decoding::default());
    let _ = (protocol.probe)(bytes);
    let mut at = 0;
    for turn in 0..200 {
        let rest = &bytes[at..];
        if rest.is_empty() {
            break;
        }
        let input = Input { bytes: &rest[..rest.len().min(cut)], wire_bytes: rest.len() };
        let from = if turn % 2 == 0 { Side::Client } else { Side::Server };
        let mut message = Message { wants_text: true, ..Message::default() };
        match decoder.next(input, from, &mut message) {
            Step::Message { len } => {
                assert!(len > 0 && len <= input.wire_bytes);
                assert_eq!(len as u64, message.parts().iter().map(|part| u64::from(*part)).sum::<u64>());
                at += len;
            }
            Step::Malformed { len, .. } => {
                assert!(len > 0 && len <= input.wire_bytes);
                at += len;
            }
            Step::NeedMore { at_least } => {
                assert!(at_least > input.bytes.len());
                break;
            }
        }
        let _ = decoder.is_boundary(rest, from);
    }
}
