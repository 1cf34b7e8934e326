//! The tables. A row here is the struct field, the Arrow column, the docs line, and the name that the protocols' Wireshark names map to.

use super::table;

table! {
    /// One message: an application-layer PDU (CoAP message, MQTT control packet, TLS or DTLS record …).
    /// Its nine byte columns from link_bytes to opaque_bytes add up to frame_bytes; over the messages of a frame and the
    /// frame's unassigned remainder, frame_bytes add up to the frame.
    messages {
        /// Number of the message in the capture, from 0, in the order in which messages became complete.
        message: u64 [""],
        /// The capture file, as named by the user.
        file: Option<std::sync::Arc<str>> [""],
        /// Frame in which the message is complete, where Wireshark shows it (frame.number).
        frame: u64 [""],
        /// First frame that carries bytes of the message.
        frame_first: u64 [""],
        /// Last frame, by number, that carries bytes of the message.
        frame_last: u64 [""],
        /// All frames that carry bytes of the message; where it goes on in the next file of several, each by its number in its own file.
        frames: Vec<u64> [""],
        /// Capture time at which the message is complete and all bytes of its stream before it are there.
        time_ns: i64 ["ns"],
        /// Capture time of the frame with the message's first byte.
        time_first_ns: i64 ["ns"],
        /// Capture time of the frame with the message's last byte.
        time_last_ns: i64 ["ns"],
        /// Session number; rows of the table sessions.
        session: Option<u32> [""],
        /// Exchange number; rows of the table exchanges. None where the message belongs to none.
        exchange: Option<u64> [""],
        /// Transport protocol: udp or tcp.
        transport: &'static str [""],
        /// Wireshark's stream index (udp.stream, tcp.stream). An equal SYN behind a RST or FIN begins one since 4.2 only, another SYN-ACK since 4.4: not here.
        stream: u32 [""],
        /// Direction: c2s from client to server, s2c from server to client.
        direction: &'static str [""],
        /// Sender's address.
        source_address: Address [""],
        /// Sender's port.
        source_port: u16 [""],
        /// Receiver's address.
        destination_address: Address [""],
        /// Receiver's port.
        destination_port: u16 [""],
        /// IP identification (RFC 791 §3.1) of the packet with the message's last byte; none where it is 0, and in IPv6. What a sender sends again has
        /// another one; what is doubled on its way has the same.
        ip_identification: Option<u16> [""],
        /// Protocol, by Wireshark's filter name: coap, mqtt, tls, dtls.
        protocol: &'static str [""],
        /// Kind of message: CoAP type (CON, NON, ACK, RST), MQTT packet type, TLS content type.
        kind: &'static str [""],
        /// The kind's variant: CoAP method or code (GET, 2.05), MQTT QoS of a PUBLISH, TLS handshake message; empty where there is none.
        variant: &'static str [""],
        /// Bytes on the wire that this message answers for: its own and its share of its frames' headers.
        frame_bytes: u32 ["bytes"],
        /// Share of link-layer headers.
        link_bytes: u32 ["bytes"],
        /// Share of padding and trailers behind the IP packet.
        padding_bytes: u32 ["bytes"],
        /// Share of IP headers (compressed ones at their compressed length).
        ip_bytes: u32 ["bytes"],
        /// Share of UDP or TCP headers.
        transport_bytes: u32 ["bytes"],
        /// (D)TLS record header, explicit nonce, tag, padding and content type byte around the message; QUIC packet header and tag; OSCORE option and tag.
        security_bytes: u32 ["bytes"],
        /// The protocol's own header bytes, the payload marker and length fields among them.
        header_bytes: u32 ["bytes"],
        /// Option bytes (CoAP), property bytes with their length field (MQTT 5).
        option_bytes: u32 ["bytes"],
        /// Application payload (CoAP payload after the marker, MQTT PUBLISH application message).
        payload_bytes: u32 ["bytes"],
        /// Bytes whose role cannot be told: encrypted, malformed, or not captured.
        opaque_bytes: u32 ["bytes"],
        /// Bytes of the message, counted in the columns above, that are in no captured frame (a gap of the stream).
        missing_bytes: u32 ["bytes"],
        /// Whether the message carries data that counts (metrics.md): a payload, or a PUBLISH without, delivered for the first time.
        is_data: bool [""],
        /// Whether it was sent again by its sender: CoAP retransmission or duplicate, MQTT DUP of a message seen before, or of the session's earlier connection.
        is_retransmission: bool [""],
        /// Whether bytes of it are not in the capture.
        is_truncated: bool [""],
        /// Whether bytes of the stream before it are not in the capture.
        is_after_gap: bool [""],
        /// What breaks the format, with offset, field and section.
        malformed: Text [""],
        /// Message ID (RFC 7252 §3), packet identifier (MQTT 5 §2.2.1), message_seq of a DTLS record's first handshake message (RFC 6347 §4.2.2).
        message_id: Option<u16> [""],
        /// Protocol version: CoAP Ver, MQTT protocol version (3, 4, 5), record's legacy version (0x0303).
        version: Option<u16> [""],
        /// CoAP code c.dd (RFC 7252 §3) as c * 32 + dd.
        code: Option<u8> [""],
        /// CoAP token in hexadecimal (RFC 7252 §5.3.1); empty text for the empty token.
        token: Text [""],
        /// CoAP options in order, name and value (RFC 7252 §5.10).
        options: Text [""],
        /// Uri-Path options joined by "/" (RFC 7252 §5.10.1).
        uri_path: Text [""],
        /// Uri-Query options joined by "&" (RFC 7252 §5.10.1).
        uri_query: Text [""],
        /// Content-Format (RFC 7252 §5.10.3).
        content_format: Option<u16> [""],
        /// Observe value (RFC 7641 §2).
        observe: Option<u32> [""],
        /// Block1 number (RFC 7959 §2.2); of Q-Block1 (RFC 9177 §4.2) where is_q_block.
        block1_num: Option<u32> [""],
        /// Block1 more flag.
        block1_more: Option<bool> [""],
        /// Block1 size exponent.
        block1_szx: Option<u8> [""],
        /// Block2 number (RFC 7959 §2.2); of Q-Block2 where is_q_block.
        block2_num: Option<u32> [""],
        /// Block2 more flag.
        block2_more: Option<bool> [""],
        /// Block2 size exponent.
        block2_szx: Option<u8> [""],
        /// Whether the block options are Q-Block1 or Q-Block2 (RFC 9177).
        is_q_block: bool [""],
        /// Size1 (RFC 7252 §5.10.9).
        size1: Option<u32> ["bytes"],
        /// Size2 (RFC 7959 §4).
        size2: Option<u32> ["bytes"],
        /// No-Response (RFC 7967 §2).
        no_response: Option<u8> [""],
        /// Hop-Limit (RFC 8768 §3).
        hop_limit: Option<u8> [""],
        /// Whether an OSCORE option is there (RFC 8613 §2): the real code, options and payload are inside.
        is_oscore: bool [""],
        /// Code of the inner message (oscore.code) where what OSCORE protects was opened: variant, options and payload are then the inner message's.
        inner_code: Option<u8> [""],
        /// MQTT QoS (MQTT 5 §3.3.1.2): of a PUBLISH.
        qos: Option<u8> [""],
        /// MQTT DUP flag (MQTT 5 §3.3.1.1): of a PUBLISH, in MQTT 3.1 (§2.1) of PUBREL, SUBSCRIBE and UNSUBSCRIBE too.
        dup: Option<bool> [""],
        /// MQTT RETAIN flag (MQTT 5 §3.3.1.3): of a PUBLISH.
        retain: Option<bool> [""],
        /// MQTT Remaining Length (MQTT 5 §2.1.4).
        remaining_length: Option<u32> ["bytes"],
        /// MQTT topic name, a topic alias resolved (MQTT 5 §3.3.2.1).
        topic_name: Text [""],
        /// Length of the topic name on the wire: 0 where an alias stands for it.
        topic_name_bytes: Option<u16> ["bytes"],
        /// MQTT 5 Topic Alias (§3.3.2.3.4).
        topic_alias: Option<u16> [""],
        /// MQTT topic filters of SUBSCRIBE and UNSUBSCRIBE joined by a line feed, each with its options as "QoS n" for SUBSCRIBE.
        topic_filters: Text [""],
        /// MQTT reason codes or return codes joined by a comma (MQTT 5 §2.4, MQTT 3.1.1 §3.2.2.3, §3.9.3).
        reason_codes: Text [""],
        /// MQTT 5 properties in order, name and value (§2.2.2).
        properties: Text [""],
        /// MQTT client identifier (MQTT 5 §3.1.3.1), Assigned Client Identifier of a CONNACK.
        client_identifier: Text [""],
        /// MQTT keep alive (MQTT 5 §3.1.2.10).
        keep_alive_s: Option<u16> ["s"],
        /// MQTT Clean Start, Clean Session before version 5 (MQTT 5 §3.1.2.4).
        clean_start: Option<bool> [""],
        /// MQTT session present (MQTT 5 §3.2.2.1.1).
        session_present: Option<bool> [""],
        /// MQTT CONNECT: user name, only where secrets were asked for; else its length as "(n bytes)".
        user_name: Text [""],
        /// MQTT CONNECT: whether a password is there (MQTT 5 §3.1.2.9).
        has_password: Option<bool> [""],
        /// MQTT CONNECT: Will topic (MQTT 5 §3.1.3.3).
        will_topic: Text [""],
        /// TLS content type of the record as it is on the wire (RFC 8446 §5.1, RFC 9147 §4); none where DTLS 1.3 hides it.
        content_type: Option<u8> [""],
        /// TLS handshake messages in the record joined by a comma (RFC 8446 §4).
        handshake_types: Text [""],
        /// Cipher suite of a ServerHello, IANA name (RFC 8446 §4.1.3).
        cipher_suite: Text [""],
        /// Server name of a ClientHello (RFC 6066 §3).
        server_name: Text [""],
        /// ALPN protocols joined by a comma (RFC 7301 §3.1).
        alpn: Text [""],
        /// TLS alert: level and description (RFC 8446 §6).
        alert: Text [""],
        /// DTLS epoch (RFC 9147 §4); of DTLS 1.3 the two low bits.
        epoch: Option<u16> [""],
        /// DTLS record sequence number (RFC 9147 §4); encrypted in DTLS 1.3, then none.
        sequence_number: Option<u64> [""],
        /// Connection ID in hexadecimal: of DTLS (RFC 9146 §3, RFC 9147 §9), of a QUIC packet of the application (RFC 9000 §17.3).
        connection_id: Text [""],
        /// Bytes of content inside a protected record as the cipher suite implies; padding, which only the keys would show, is counted in.
        plaintext_bytes: Option<u32> ["bytes"],
        /// Stream of HTTP/2 (RFC 9113 §5) or QUIC (RFC 9000 §2).
        stream_id: Option<u64> [""],
        /// Names and values of a field section before compression (RFC 9113 §4.3); its compressed bytes are in option_bytes.
        field_section_bytes: Option<u32> ["bytes"],
        /// Payload before compression, where it was agreed on (permessage-deflate, RFC 7692); payload_bytes is what it takes on the wire.
        uncompressed_bytes: Option<u32> ["bytes"],
        /// FNV-1a hash (64 bit) of the payload, to find equal payloads without showing them.
        payload_hash: Option<u64> [""],
        /// The payload, only where it was asked for.
        payload: Option<Vec<u8>> [""],
    }
}

table! {
    /// One exchange: the messages of one transaction (metrics.md): a request with its answer, a notification with its
    /// acknowledgement, a QoS flow, a handshake, a block-wise transfer.
    exchanges {
        /// Number of the exchange in the capture, from 0, in the order in which exchanges began.
        exchange: u64 [""],
        /// Session number.
        session: u32 [""],
        /// Protocol, by Wireshark's filter name.
        protocol: &'static str [""],
        /// What kind of exchange: "GET", "observe", "notification", "PUBLISH QoS 1", "SUBSCRIBE", "handshake", "upgrade", "ping" …
        kind: &'static str [""],
        /// Direction of the message that began it.
        direction: &'static str [""],
        /// How it ended: complete, unanswered, suppressed (no response, as the request asks by No-Response, RFC 7967), reset, cancelled, superseded, ambiguous, open (at the end of the capture; or a block-wise transfer of which no further block was asked for).
        outcome: &'static str [""],
        /// The capture file of the first message.
        file: Option<std::sync::Arc<str>> [""],
        /// Frame of the message that began it.
        frame_first: u64 [""],
        /// Frame of the last message that belongs to it.
        frame_last: u64 [""],
        /// Frame of the acknowledgement (ACK, PUBACK, PUBREC).
        frame_ack: Option<u64> [""],
        /// Frame of the response (CoAP response, CONNACK, SUBACK, PUBCOMP, Finished of the handshake).
        frame_response: Option<u64> [""],
        /// Capture time of the first transmission of the message that began it.
        time_ns: i64 ["ns"],
        /// From the first transmission to the acknowledgement.
        ack_rtt_ns: Option<i64> ["ns"],
        /// From the first transmission to the response (piggybacked or separate); to PUBCOMP for QoS 2.
        rtt_ns: Option<i64> ["ns"],
        /// From the publisher's PUBLISH to this delivery of it to a subscriber (metrics.md, Delay).
        delay_ns: Option<i64> ["ns"],
        /// Time since the notification before (RFC 7641), since the request before for the same resource (polling interval).
        interval_ns: Option<i64> ["ns"],
        /// Number of the publisher's exchange that this delivery carries on; of the registration for a notification.
        parent: Option<u64> [""],
        /// Messages, retransmissions and duplicates among them.
        messages: u32 [""],
        /// Times that a message of it was sent again.
        retransmissions: u32 [""],
        /// Blocks transferred (RFC 7959), handshake flights.
        parts: Option<u32> [""],
        /// Data bytes, each once.
        payload_bytes: u64 ["bytes"],
        /// Bytes on the wire of all its messages.
        frame_bytes: u64 ["bytes"],
        /// CoAP token in hexadecimal.
        token: Text [""],
        /// Message ID, packet identifier of the first message.
        message_id: Option<u16> [""],
        /// What it is about: CoAP Uri-Path, MQTT topic.
        resource: Text [""],
        /// The answer's code: 2.05, reason code, cipher suite.
        result: Text [""],
    }
}

table! {
    /// One session: what one receiver does with one sender, from opening to the last message, as sums; figures are made of them.
    sessions {
        /// Session number, from 0, in the order in which sessions began.
        session: u32 [""],
        /// Protocol, by Wireshark's filter name.
        protocol: &'static str [""],
        /// Transport protocol: udp or tcp.
        transport: &'static str [""],
        /// Protocol version in words: "MQTT 5", "DTLS 1.2", "CoAP".
        version: Text [""],
        /// Protection: "none", or "TLS 1.3 TLS_AES_256_GCM_SHA384", "OSCORE".
        security: Text [""],
        /// How the protocol was found: "decode-as", "port", "heuristic".
        found_by: &'static str [""],
        /// Capture file of the first frame.
        file: Option<std::sync::Arc<str>> [""],
        /// Wireshark's stream index of the first frame (udp.stream, tcp.stream).
        stream: u32 [""],
        /// Wireshark's stream indices that it goes on with, where a peer's address changed (RFC 9146 §6).
        moved_streams: Vec<u64> [""],
        /// Client's address.
        client_address: Address [""],
        /// Client's port.
        client_port: u16 [""],
        /// Server's address.
        server_address: Address [""],
        /// Server's port.
        server_port: u16 [""],
        /// Name of the client: MQTT client identifier.
        client_identifier: Text [""],
        /// First frame.
        frame_first: u64 [""],
        /// Last frame.
        frame_last: u64 [""],
        /// Receiver of the data: client or server; the side that more data messages reach, of closed records the side whose records bring more.
        receiver: &'static str [""],
        /// Time1 by the transport's first packet (TCP SYN).
        time1_transport_ns: i64 ["ns"],
        /// Time1 by the first handshake message (ClientHello); none where not secured.
        time1_security_ns: Option<i64> ["ns"],
        /// Time1 by the application: the receiver's first request or CONNECT; none where not visible.
        time1_application_ns: Option<i64> ["ns"],
        /// Whether the application's opening message was seen.
        is_opening_seen: bool [""],
        /// Time of the session's last frame.
        time_last_ns: i64 ["ns"],
        /// Cipher suite, IANA name.
        cipher_suite: Text [""],
        /// Server name (RFC 6066 §3).
        server_name: Text [""],
        /// ALPN protocol chosen (RFC 7301).
        alpn: Text [""],
        /// How the peers prove who they are, as far as visible: "certificate", "client certificate", "PSK", "resumption".
        authentication: Text [""],
        /// Connection ID in hexadecimal.
        connection_id: Text [""],
        /// Bytes on the wire of handshake records.
        handshake_bytes: u64 ["bytes"],
        /// Flights of the handshake.
        handshake_flights: u32 [""],
        /// From the first handshake message to the last one before application data.
        handshake_ns: Option<i64> ["ns"],
        /// Messages of the session.
        messages: u64 [""],
        /// Frames without a message: SYN, bare ACK, FIN, keep-alive, TCP retransmissions.
        control_frames: u64 [""],
        /// CoAP: messages sent again by the application layer; MQTT: DUP deliveries of a message seen before, or of the session's earlier connection.
        retransmissions: u64 [""],
        /// TCP segments sent again.
        tcp_retransmissions: u64 [""],
        /// TCP segments that arrived behind later ones.
        tcp_out_of_order: u64 [""],
        /// Bytes of the stream that are not in the capture.
        lost_bytes: u64 ["bytes"],
        /// Frames captured twice, microseconds apart: in the control frames, not in the messages.
        captured_twice: u64 [""],
        /// Frames that the link layer sent again (IEEE 802.15.4: the same sequence number and content, less than 1.5 s later): in the control frames, not in
        /// the messages.
        link_retransmissions: u64 [""],
        /// Names and values of field sections before compression (HTTP/2, RFC 7541), where all that built them is in the capture.
        field_section_bytes: u64 ["bytes"],
        /// The same field sections as they were sent.
        field_block_bytes: u64 ["bytes"],
        /// Malformed messages.
        malformed: u64 [""],
        /// Exchanges that were answered.
        exchanges_complete: u64 [""],
        /// Exchanges that were not answered.
        exchanges_unanswered: u64 [""],
        /// Exchanges that ended by RST.
        exchanges_reset: u64 [""],
        /// Messages after the chosen number of data messages, which no figure holds.
        messages_after_stop: u64 [""],
    }
}

table! {
    /// The sums of one direction of a session.
    directions {
        /// Session number.
        session: u32 [""],
        /// c2s or s2c.
        direction: &'static str [""],
        /// Data messages delivered in this direction, each once.
        data_messages: u64 [""],
        /// Data bytes delivered in this direction, each once.
        data_bytes: u64 ["bytes"],
        /// Data bytes less what they take on the wire, where they were compressed (RFC 7692).
        data_saved_bytes: i64 ["bytes"],
        /// Time of the first data message.
        data_first_ns: Option<i64> ["ns"],
        /// Time2 by arrival: time of the last data message.
        data_last_ns: Option<i64> ["ns"],
        /// Time2 by acknowledgement: when the receiver acknowledged the last data message (ACK, PUBACK, PUBCOMP).
        data_last_ack_ns: Option<i64> ["ns"],
        /// Whether the last data message asks for an acknowledgement (CON, QoS 1, QoS 2).
        is_ack_expected: bool [""],
        /// Bytes received until Time2, control frames among them: link, padding, ip, transport, security, header, option, payload, opaque.
        received_until_time2: Vec<u64> ["bytes"],
        /// Bytes of the data-carrying messages, the same nine parts.
        data_parts: Vec<u64> ["bytes"],
        /// Bytes of frames without a message, the same nine parts.
        control_parts: Vec<u64> ["bytes"],
        /// Frames without a message.
        control_frames: u64 [""],
        /// Bytes of the publishers' legs: CONNECT, CONNACK, each PUBLISH delivered in this direction, its acknowledgements; the same nine parts.
        publisher_parts: Vec<u64> ["bytes"],
        /// Frames' bytes of the streams' remainders that belong to no message, the same nine parts.
        unassigned_parts: Vec<u64> ["bytes"],
    }
}

table! {
    /// Messages and bytes of one kind in one direction of a session.
    kinds {
        /// Session number.
        session: u32 [""],
        /// c2s or s2c.
        direction: &'static str [""],
        /// Protocol, by Wireshark's filter name.
        protocol: &'static str [""],
        /// Kind, as in the table messages.
        kind: &'static str [""],
        /// Variant, as in the table messages.
        variant: &'static str [""],
        /// Messages.
        messages: u64 [""],
        /// Smallest message, the protocol's own bytes.
        message_bytes_min: u32 ["bytes"],
        /// Largest message, the protocol's own bytes.
        message_bytes_max: u32 ["bytes"],
        /// Bytes: link, padding, ip, transport, security, header, option, payload, opaque.
        parts: Vec<u64> ["bytes"],
    }
}

table! {
    /// Order statistics and sums of one measured time of a session.
    timings {
        /// Session number.
        session: u32 [""],
        /// What was measured: ack_rtt, rtt, delay, interval, tcp_handshake, tcp_ack.
        timing: &'static str [""],
        /// Of which exchanges (kind in the table exchanges, but the method before a transfer shows that it is block-wise); empty for TCP's.
        kind: &'static str [""],
        /// Samples.
        count: u64 [""],
        /// Samples left out because their first message was sent again (Karn; trap 8).
        retransmitted: u64 [""],
        /// Negative samples among them (trap 34).
        negative: u64 [""],
        /// Sum.
        sum_ns: i64 ["ns"],
        /// Sum of squared deviations from the mean.
        squared_deviations_ns2: f64 ["ns²"],
        /// Smallest.
        min_ns: i64 ["ns"],
        /// Median: exact up to 1,024 samples, else within 0.05 %.
        median_ns: i64 ["ns"],
        /// 95th percentile, nearest rank, as exact as the median.
        p95_ns: i64 ["ns"],
        /// 99th percentile, nearest rank, as exact as the median.
        p99_ns: i64 ["ns"],
        /// Largest.
        max_ns: i64 ["ns"],
    }
}

table! {
    /// What the capture does not show, and which figures that affects.
    notes {
        /// Identifier of the kind of note.
        note: &'static str [""],
        /// Session number; none where it is about the capture.
        session: Option<u32> [""],
        /// The capture file of the first occurrence.
        file: Option<std::sync::Arc<str>> [""],
        /// Frame of the first occurrence.
        frame_first: u64 [""],
        /// Frame of the last occurrence.
        frame_last: u64 [""],
        /// Occurrences.
        count: u64 [""],
        /// The note in words.
        text: Text [""],
        /// Which figures it affects.
        affects: &'static str [""],
    }
}

table! {
    /// One capture file.
    captures {
        /// The file, as named by the user.
        file: Option<std::sync::Arc<str>> [""],
        /// Format and compression.
        format: Text [""],
        /// Frames.
        frames: u64 [""],
        /// Bytes on the wire.
        frame_bytes: u64 ["bytes"],
        /// Bytes captured.
        captured_bytes: u64 ["bytes"],
        /// Frames cut by the snap length.
        cut_frames: u64 [""],
        /// Capture time of the first frame.
        time_first_ns: Option<i64> ["ns"],
        /// Largest capture time.
        time_last_ns: Option<i64> ["ns"],
        /// Coarsest timestamp resolution.
        time_resolution_ns: u64 ["ns"],
        /// Frames that the capturing system says it dropped.
        dropped_frames: Option<u64> [""],
        /// Frames stamped before the frame before them.
        frames_back_in_time: u64 [""],
        /// Link types, LINKTYPE numbers joined by a comma.
        link_types: Text [""],
        /// Interface names joined by a comma.
        interfaces: Text [""],
        /// Comments joined by a line feed.
        comments: Text [""],
        /// Decryption secrets blocks embedded.
        secrets: u32 [""],
        /// What ended the reading early.
        damage: Text [""],
    }
}
