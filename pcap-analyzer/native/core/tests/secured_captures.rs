//! TLS and DTLS through the whole pass: this project's recordings, and public captures whose README says what they hold. The public ones lie in
//! `../shared/captures` beside the checkout; where that folder is not there, their tests say so and pass.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails should stop")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pcapstat_core::capture::Input;
use pcapstat_core::pipeline::{self, Options, Outcome, Sink};
use pcapstat_core::schema::{exchanges, messages};

#[derive(Default)]
struct Rows {
    messages: Vec<messages::Row>,
    handshakes: Vec<exchanges::Row>,
}

impl Sink for Rows {
    fn message(&mut self, row: &messages::Row) {
        self.messages.push(row.clone());
    }

    fn exchange(&mut self, row: &exchanges::Row) {
        if row.kind == "handshake" {
            self.handshakes.push(row.clone());
        }
    }
}

fn read(path: &Path) -> (Outcome, Rows) {
    let options = Options { wants_messages: true, wants_exchanges: true, ..Options::default() };
    let mut rows = Rows::default();
    let outcome = pipeline::run(vec![Input::Path(path.to_owned())], &options, &mut rows).unwrap();
    (outcome, rows)
}

fn recording(name: &str) -> (Outcome, Rows) {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../captures").join(name))
}

fn public(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/captures").join(name);
    if !path.is_file() {
        println!("not run: {} is not there", path.display());
        return None;
    }
    Some(path)
}

/// RFC 8446 §2: ClientHello, the server's flight, the client's Finished, whatever the library.
#[test]
fn recorded_handshakes_of_tls_1_3_have_three_flights() {
    for (name, sessions) in [("a-paho-tls-qos1", 2), ("a-hivemq-tls-qos0", 2), ("a-java-coap-tls-con", 1)] {
        let (outcome, rows) = recording(&format!("{name}.pcapng"));

        assert_eq!(sessions, rows.handshakes.len(), "{name}");
        for handshake in &rows.handshakes {
            assert_eq!(("complete", Some(3)), (handshake.outcome, handshake.parts), "{name}");
        }
        for session in outcome.sessions.all() {
            let row = &session.row;
            assert_eq!(
                (Some("TLS 1.3"), Some("certificate"), 3),
                (row.version.get(), row.authentication.get(), row.handshake_flights),
                "{name}"
            );
        }
    }
}

/// RFC 6347 §4.2.4: six flights with HelloVerifyRequest; an empty ACK of CoAP (RFC 7252 §3) is the smallest content, 4 bytes.
#[test]
fn a_recorded_handshake_of_dtls_has_six_flights() {
    let (_, rows) = recording("a-californium-dtls-con.pcapng");

    let handshake = &rows.handshakes[0];
    assert_eq!(("complete", Some(6), Some("TLS_PSK_WITH_AES_128_CCM_8")), (handshake.outcome, handshake.parts, handshake.result.get()));
    let data = rows.messages.iter().filter(|row| row.kind == "Application Data");
    assert_eq!(Some(4), data.map(|row| row.plaintext_bytes.unwrap()).min());
}

/// wireshark-notes/all: one connection a cipher suite, 73 of them.
#[test]
fn a_capture_of_73_cipher_suites_has_73() {
    let Some(path) = public("wireshark-notes/all__dump.pcapng") else { return };
    let (_, rows) = read(&path);

    let suites: BTreeSet<&str> = rows.handshakes.iter().filter_map(|handshake| handshake.result.get()).collect();
    assert_eq!((73, 73), (rows.handshakes.len(), suites.len()));
    assert!(rows.handshakes.iter().all(|handshake| handshake.outcome == "complete"));
    let data = rows.messages.iter().filter(|row| row.kind == "Application Data");
    assert!(data.clone().count() > 0 && data.into_iter().all(|row| row.plaintext_bytes.is_some()));
}

/// zeek/tls__dtls13-cid: both sides chose connection IDs that can be read.
#[test]
fn connection_ids_of_dtls_1_3_are_those_that_the_peers_chose() {
    let Some(path) = public("zeek/tls__dtls13-cid.pcap") else { return };
    let (_, rows) = read(&path);

    let ids: BTreeSet<&str> = rows.messages.iter().filter_map(|row| row.connection_id.get()).collect();
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(ids.contains(hex("I am a client CID").as_str()) && ids.contains(hex("fancy server CID").as_str()), "{ids:?}");
}
