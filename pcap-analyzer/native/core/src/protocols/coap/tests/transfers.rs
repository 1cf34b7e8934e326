//! Block-wise transfers (RFC 7959).

use super::*;

/// GET, or a response, with options behind each other and a payload of `bytes`.
fn block2(kind: u8, code: u8, id: u16, token: &[u8], observe: &[u8], block: u8, bytes: usize) -> Vec<u8> {
    let path: &[u8] = match (code, observe) {
        (1, []) => b"\xb1a",
        (1, _) => b"\x51a",
        _ => b"",
    };
    let delta = 23 - if code == 1 { 11 } else { 6 * u8::from(!observe.is_empty()) };
    let option: &[u8] = if delta < 13 { &[delta << 4 | 1, block] } else { &[0xd1, delta - 13, block] };
    let payload = [&[0xff][..], &vec![b'w'; bytes]].concat();
    build(kind, code, id, token, &[observe, path, option, if bytes > 0 { &payload } else { b"" }].concat())
}

/// Registers, and gets the first of two blocks of 64 bytes.
fn register_for_two_blocks(scene: &mut Scene) {
    scene.send(Client, 0, &build(0, 1, 1, b"\x01", b"\x60\x51a"));
    scene.send(Server, 10, &block2(2, 69, 1, b"\x01", b"\x61\x01", 0x0a, 64));
}

#[test]
fn later_blocks_of_what_is_observed_are_asked_for_by_requests_of_their_own() {
    // RFC 7959 §3.4, Figure 12: "requests for additional blocks cannot make use of the token of the observation relationship"
    let mut scene = Scene::new();
    register_for_two_blocks(&mut scene);
    scene.send(Client, 20, &block2(0, 1, 2, b"\x02", b"", 0x12, 0));
    assert!(scene.send(Server, 30, &block2(2, 69, 2, b"\x02", b"", 0x12, 5)).is_data);
    for number in 1..4_u8 {
        let (time_ms, id) = (i64::from(number) * 1000, 90 + u16::from(number));
        assert!(scene.send(Server, time_ms, &block2(0, 69, id, b"\x01", &[0x61, 1 + number], 0x0a, 64)).is_data);
        scene.send(Client, time_ms + 5, &build(2, 0, id, b"", b""));
        scene.send(Client, time_ms + 20, &block2(0, 1, 2 + u16::from(number), &[2 + number], b"", 0x12, 0));
        assert!(scene.send(Server, time_ms + 30, &block2(2, 69, 2 + u16::from(number), &[2 + number], b"", 0x12, 5)).is_data);
    }
    let ended = scene.end();
    let of = |kind| ended.iter().filter(move |exchange| exchange.kind == kind);

    assert_eq!(vec![("open", Some(10), 64)], of("observe").map(|row| (row.outcome, ms(row.rtt_ns), row.payload_bytes)).collect::<Vec<_>>());
    let notifications: Vec<_> = of("notification").map(|row| (row.outcome, ms(row.ack_rtt_ns), ms(row.interval_ns))).collect();
    assert_eq!(vec![("complete", Some(5), Some(990)), ("complete", Some(5), Some(1000)), ("complete", Some(5), Some(1000))], notifications);
    let rest: Vec<_> = of("GET").map(|row| (row.outcome, ms(row.rtt_ns), ms(row.interval_ns), row.payload_bytes)).collect();
    assert_eq!(vec![("complete", Some(10), None, 5); 4], rest);
}

#[test]
fn a_later_block_with_the_token_of_the_registration_does_not_end_it() {
    let mut scene = Scene::new();
    register_for_two_blocks(&mut scene);
    scene.send(Client, 20, &block2(0, 1, 2, b"\x01", b"", 0x12, 0));
    assert!(scene.send(Server, 30, &block2(2, 69, 2, b"\x01", b"", 0x12, 5)).is_data);
    scene.send(Client, 40, &block2(0, 1, 3, b"\x01", b"", 0x12, 0));
    assert!(scene.send(Server, 50, &block2(1, 69, 80, b"\x01", b"", 0x12, 5)).is_data);
    assert!(scene.send(Server, 1010, &block2(1, 69, 90, b"\x01", b"\x61\x02", 0x0a, 64)).is_data);
    let ended: Vec<_> = scene.end().iter().map(|row| (row.kind, row.outcome, ms(row.interval_ns), row.payload_bytes)).collect();

    assert_eq!(vec![("observe", "open", None, 74), ("notification", "complete", Some(1000), 64)], ended);
}

/// PUT, or the response to it, with Block1 and a payload of `bytes`.
fn block1(kind: u8, code: u8, id: u16, token: &[u8], block: u8, bytes: usize) -> Vec<u8> {
    let options: &[u8] = if code == 3 { &[0xb1, b'a', 0xd1, 3, block] } else { &[0xd1, 14, block] };
    let payload = [&[0xff][..], &vec![b'x'; bytes]].concat();
    build(kind, code, id, token, &[options, if bytes > 0 { &payload } else { b"" }].concat())
}

#[test]
fn a_transfer_of_which_the_server_keeps_no_state_ends_at_its_last_block() {
    // RFC 7959 Figure 8: each block of the PUT is answered by 2.04 with the more bit unset
    let mut scene = Scene::new();
    for number in 0..4 {
        let (time_ms, more) = (i64::from(number) * 100, u8::from(number < 3));
        scene.send(Client, time_ms, &block1(0, 3, number.into(), b"A", number << 4 | more << 3 | 2, if more == 1 { 64 } else { 20 }));
        scene.send(Server, time_ms + 50, &block1(2, 68, number.into(), b"A", number << 4 | 2, 0));
    }
    let ended: Vec<_> = scene.end().iter().map(|row| (row.outcome, ms(row.ack_rtt_ns), ms(row.rtt_ns), row.payload_bytes)).collect();

    assert_eq!(vec![("complete", Some(50), Some(350), 212)], ended);
}

#[test]
fn a_transfer_ends_at_an_error_and_at_an_answer_without_block1() {
    for answer in [block1(2, 141, 7, b"A", 0x0a, 0), build(2, 68, 7, b"A", b"")] {
        let mut scene = Scene::new();
        scene.send(Client, 0, &block1(0, 3, 7, b"A", 0x0a, 64));
        scene.send(Server, 50, &answer);
        let ended: Vec<_> = scene.end().iter().map(|row| (row.outcome, ms(row.rtt_ns))).collect();

        assert_eq!(vec![("complete", Some(50))], ended);
    }
}

#[test]
fn a_transfer_may_take_longer_than_ids_live() {
    // RFC 7252 §4.8.2: EXCHANGE_LIFETIME is 247 s; the last of 70 blocks is asked for after 280 s, and each with a token of its own
    let mut scene = Scene::new();
    for number in 0..70 {
        let (time_ms, id, more) = (i64::from(number) * 4000, u16::from(number), u8::from(number < 69));
        // szx 2 with numbers below 16 would do in one byte; from there on the option has two
        let wide = |code: u8| -> Vec<u8> {
            let head: &[u8] = if code == 1 { &[0xb1, b'a', 0xc2] } else { &[0xd2, 10] };
            [head, &[number >> 4, number << 4 | more << 3 | 2]].concat()
        };
        scene.send(Client, time_ms, &build(0, 1, id, &[number], &wide(1)));
        scene.send(Server, time_ms + 10, &build(2, 69, id, &[number], &[&wide(69)[..], b"\xff", &[b'x'; 64]].concat()));
    }
    let ended: Vec<_> = scene.end().iter().map(|row| (row.outcome, ms(row.rtt_ns), row.parts)).collect();

    assert_eq!(vec![("complete", Some(276_010), Some(70))], ended);
}

#[test]
fn of_many_transfers_the_latest_go_on() {
    // POST /N with Block1 0/more/16 (RFC 7959 §2.2) for two thousand N, of which none is answered; then block 1 of the first and of the last
    let post = |number: u16, value: u8, id| {
        let path = format!("{number:04}");
        let options = [&b"\xb4"[..], path.as_bytes(), b"\xd1\x03", &[value, 0xff], &[b'x'; 16]].concat();
        build(0, 2, id, &number.to_be_bytes(), &options)
    };
    let mut scene = Scene::new();
    for number in 0..2000 {
        scene.send(Client, i64::from(number), &post(number, 0x08, number));
    }
    scene.send(Client, 2001, &post(0, 0x10, 2000));
    scene.send(Client, 2002, &post(1999, 0x10, 2001));
    let ended = scene.end();

    assert_eq!(
        (2001, 2),
        (ended.len(), ended.iter().find(|exchange| exchange.message_id == Some(1999)).map_or(0, |exchange| exchange.messages))
    );
}

#[test]
fn interleaved_transfers_are_kept_apart() {
    let mut scene = Scene::new();
    for (number, more) in [(0, true), (1, true), (2, false)] {
        let ask = |id, token: &[u8]| {
            build(0, 1, id, token, if number == 0 { b"\xb1a" } else { [&b"\xb1a\xc1"[..], &[number << 4]].concat().leak() })
        };
        let tell = |id, token: &[u8]| {
            build(2, 69, id, token, &[&b"\xd1\x0a"[..], &[number << 4 | u8::from(more) << 3, 0xff], &[b'x'; 16]].concat())
        };
        let id = u16::from(number) * 2;
        scene.send(Client, i64::from(number) * 10, &ask(id, b"\x0a"));
        scene.send(Client, i64::from(number) * 10 + 1, &ask(id + 1, b"\x0b"));
        scene.send(Server, i64::from(number) * 10 + 2, &tell(id, b"\x0a"));
        scene.send(Server, i64::from(number) * 10 + 3, &tell(id + 1, b"\x0b"));
    }
    let ended = scene.end();

    assert_eq!(2, ended.len());
    for exchange in &ended {
        assert_eq!(
            ("GET block-wise", "complete", 48, Some(3), Some(22)),
            (exchange.kind, exchange.outcome, exchange.payload_bytes, exchange.parts, ms(exchange.rtt_ns))
        );
    }
}

#[test]
fn transfers_of_one_path_at_several_hosts_are_kept_apart() {
    // RFC 7252 §5.10.1, §5.10.2: Uri-Host (3), and Proxy-Uri (35: delta 13, extended by 22) in the place of all, name the resource too
    let hosts: [&[u8]; 2] = [b"\x32h1\x81a", b"\x32h2\x81a"];
    let proxied: [&[u8]; 2] = [b"\xd8\x16coap://a", b"\xd8\x16coap://b"];
    for [one, other] in [hosts, proxied] {
        let mut scene = Scene::new();
        for (id, options) in [(1, one), (2, other)] {
            scene.send(Client, 0, &build(0, 1, id, &[id as u8], options));
            // Block2 0/1/16
            scene.send(Server, 10, &build(2, 69, id, &[id as u8], b"\xd1\x0a\x08\xff0123456789abcdef"));
        }
        // Block2 1/0/16, of the other resource first; before Proxy-Uri (delta 12), behind Uri-Path (delta 12)
        for (id, options) in [(3, other), (4, one)] {
            let rest = match options {
                [0xd8, _, uri @ ..] => [b"\xd1\x0a\x10\xc8", uri].concat(),
                path => [path, b"\xc1\x10"].concat(),
            };
            scene.send(Client, 20, &build(0, 1, id, &[id as u8], &rest));
            scene.send(Server, 30 + i64::from(id), &build(2, 69, id, &[id as u8], b"\xd1\x0a\x10\xffend"));
        }

        let ended = scene.end();
        let expected = vec![("GET block-wise", "complete", Some(34)), ("GET block-wise", "complete", Some(33))];
        assert_eq!(expected, ended.iter().map(|exchange| (exchange.kind, exchange.outcome, ms(exchange.rtt_ns))).collect::<Vec<_>>());
        assert_eq!(vec![None, None], ended.iter().map(|exchange| exchange.interval_ns).collect::<Vec<_>>());
    }
}
