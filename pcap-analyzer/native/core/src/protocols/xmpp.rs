//! XMPP (RFC 6120, RFC 6121) over TCP: stream headers and footers, stanzas, and the elements of negotiation; PubSub (XEP-0060).
//!
//! Byte columns: of a message stanza the text of its body is payload, of a PubSub publication or event the content of its items; all else is header.
//! Behind STARTTLS (RFC 6120 §5) the connection is TLS.

use super::{Carrier, Decoder, Input, Likely, Malformed, Pairing, Port, Protocol, Step};
use crate::bytes::hash;
use crate::exchanges::{ExchangeId, Exchanges, Moment, Placement};
use crate::message::{Message, Side};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// XMPP.
pub const XMPP: Protocol = Protocol {
    name: "xmpp",
    decode_as: "xmpp",
    standards: &["RFC 6120", "RFC 6121", "XEP-0060"],
    carrier: Carrier::Stream,
    is_security: false,
    carries: None,
    ports: &[Port::Tcp(5222), Port::Tcp(5269), Port::Tls(5222), Port::Tls(5223), Port::Tls(5269)],
    probe,
    connection_id: None,
    decoder: |_| Box::new(Xmpp),
    pairing: || Box::<Stanzas>::default(),
    wireshark: &[("xmpp.iq", "kind"), ("xmpp.message", "kind"), ("xmpp.presence", "kind"), ("xmpp.type", "variant")],
};

/// Elements at the top level of a stream (RFC 6120 §4, §5, §6, §8).
const ELEMENTS: [&str; 14] = [
    "message",
    "presence",
    "iq",
    "stream:features",
    "stream:error",
    "starttls",
    "proceed",
    "failure",
    "auth",
    "challenge",
    "response",
    "success",
    "abort",
    "stream:stream",
];
/// Types of stanzas (RFC 6120 §8.2.3, RFC 6121 §4.7.1, §5.2.2).
const TYPES: [&str; 16] = [
    "get",
    "set",
    "result",
    "error",
    "chat",
    "groupchat",
    "headline",
    "normal",
    "unavailable",
    "subscribe",
    "subscribed",
    "unsubscribe",
    "unsubscribed",
    "probe",
    "available",
    "none",
];

struct Xmpp;

impl Decoder for Xmpp {
    fn next(&mut self, input: Input<'_>, _: Side, message: &mut Message) -> Step {
        let bytes = input.bytes;
        let len = match measure(bytes) {
            Ok(Some(len)) => len,
            Ok(None) if bytes.len() < input.wire_bytes => input.wire_bytes,
            Ok(None) => return Step::NeedMore { at_least: input.wire_bytes + 1 },
            Err(offset) => {
                let why = Malformed { offset, field: "no element begins here", section: "RFC 6120 §4.1" };
                return Step::Malformed { len: input.wire_bytes, why };
            }
        };
        show(bytes.get(..len).unwrap_or(bytes), len, message);
        Step::Message { len }
    }

    fn is_boundary(&self, bytes: &[u8], _: Side) -> bool {
        ["<message", "<presence", "<iq", "<stream:", "<?xml"].iter().any(|start| bytes.starts_with(start.as_bytes()))
    }
}

/// The length of what stands at the start: space, a stream's header (with an XML declaration) or footer, or a whole element.
/// None where its end has not come; an offset where it is nothing of these.
fn measure(bytes: &[u8]) -> Result<Option<usize>, usize> {
    let space = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    if space > 0 {
        return Ok(Some(space));
    }
    let declaration = if bytes.starts_with(b"<?") { find(bytes, b"?>").map(|at| at + 2) } else { Some(0) };
    let Some(start) = declaration else { return Ok(None) };
    let start = start + bytes.get(start..).unwrap_or(&[]).iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        let Some(tag) = tag(bytes, at)? else { return Ok(None) };
        let is_stream = depth == 0 && name_of(bytes, &tag.range) == "stream:stream";
        match tag.kind {
            Kind::Begin if is_stream => return Ok(Some(tag.range.end)),
            Kind::Begin => depth += 1,
            Kind::End => depth = depth.saturating_sub(1),
            Kind::Empty | Kind::Other => {}
        }
        if depth == 0 && tag.kind != Kind::Other {
            return Ok(Some(tag.range.end));
        }
        let Some(next) = bytes.get(tag.range.end..).and_then(|rest| rest.iter().position(|&byte| byte == b'<')) else { return Ok(None) };
        at = tag.range.end + next;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Begin,
    End,
    Empty,
    /// Comment, CDATA, processing instruction.
    Other,
}

struct Tag {
    kind: Kind,
    range: Range<usize>,
}

/// The tag at `at`, which quotes in attributes do not end. None where it has not ended.
fn tag(bytes: &[u8], at: usize) -> Result<Option<Tag>, usize> {
    let rest = bytes.get(at..).unwrap_or(&[]);
    if rest.is_empty() {
        return Ok(None);
    }
    if rest.first() != Some(&b'<') {
        return Err(at);
    }
    for (start, end) in [(&b"<![CDATA["[..], &b"]]>"[..]), (b"<!--", b"-->"), (b"<?", b"?>")] {
        if rest.starts_with(start) {
            return Ok(find(rest, end).map(|found| Tag { kind: Kind::Other, range: at..at + found + end.len() }));
        }
    }
    let mut quote = None;
    for (offset, &byte) in rest.iter().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => {
                let kind = match (rest.get(1), offset.checked_sub(1).and_then(|before| rest.get(before))) {
                    (Some(b'/'), _) => Kind::End,
                    (_, Some(b'/')) => Kind::Empty,
                    _ => Kind::Begin,
                };
                return Ok(Some(Tag { kind, range: at..at + offset + 1 }));
            }
            _ => {}
        }
    }
    Ok(None)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// The name in a tag.
fn name_of<'a>(bytes: &'a [u8], tag: &Range<usize>) -> &'a str {
    let text = bytes.get(tag.clone()).and_then(|tag| std::str::from_utf8(tag).ok()).unwrap_or("");
    text.trim_start_matches(['<', '/']).split(|c: char| c.is_whitespace() || c == '>' || c == '/').next().unwrap_or("")
}

/// An attribute's value in the text of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let at =
        tag.match_indices(name).map(|(at, _)| at).find(|at| tag.get(..*at).is_some_and(|before| before.ends_with(char::is_whitespace)))?;
    let rest = tag.get(at + name.len()..)?.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    rest.get(1..)?.split(quote).next()
}

fn known(words: &'static [&'static str], word: &str) -> Option<&'static str> {
    words.iter().copied().find(|known| *known == word)
}

/// Fills in what an element shows.
fn show(bytes: &[u8], len: usize, message: &mut Message) {
    message.row.header_bytes = u32::try_from(len).unwrap_or(u32::MAX);
    message.facts.version = Some("XMPP");
    let start =
        bytes.iter().position(|&byte| byte == b'<').filter(|_| !bytes.starts_with(b"<?")).or_else(|| find(bytes, b"?>").map(|at| at + 2));
    let start = start.map(|start| start + bytes.get(start..).unwrap_or(&[]).iter().take_while(|byte| byte.is_ascii_whitespace()).count());
    let Some(first) = start.and_then(|start| tag(bytes, start).ok().flatten()) else {
        message.row.kind = "space";
        return;
    };
    let name = name_of(bytes, &first.range);
    message.row.kind = known(&ELEMENTS, name).unwrap_or("element");
    let text = bytes.get(first.range.clone()).and_then(|tag| std::str::from_utf8(tag).ok()).unwrap_or("");
    message.row.variant = attribute(text, "type").and_then(|word| known(&TYPES, word)).unwrap_or("");
    message.body_tag = attribute(text, "id").map_or(0, |id| hash(id.as_bytes()));
    message.facts.is_opening = name == "stream:stream" && first.kind == Kind::Begin;
    message.carries_on = if name == "proceed" { Some("tls") } else { None };
    if first.kind == Kind::Begin && matches!(name, "message" | "iq") {
        show_content(bytes, first.range.end, message);
    }
}

/// The body's text, or the content of items.
fn show_content(bytes: &[u8], from: usize, message: &mut Message) {
    let inside = bytes.get(from..).unwrap_or(&[]);
    let Some(content) = content(inside, b"<body", b"</body>").or_else(|| content(inside, b"<item", b"</item>")) else { return };
    let payload = u32::try_from(content.len()).unwrap_or(u32::MAX);
    message.row.payload_bytes = payload;
    message.row.header_bytes -= payload;
    message.payload_range = from + content.start..from + content.end;
    // a server that carries an item on may write its quotes anew: what is compared is its text
    let text: Vec<u8> = text_of(inside.get(content).unwrap_or(&[]));
    message.payload_digest = hash(&text);
    message.subject_hash = hash(b"xmpp");
}

/// What stands between a start tag (of just this name) and its end tag.
fn content(bytes: &[u8], start: &[u8], end: &[u8]) -> Option<Range<usize>> {
    let mut from = 0;
    loop {
        let at = from + find(bytes.get(from..)?, start)?;
        if matches!(bytes.get(at + start.len()), Some(b'>' | b' ' | b'\t' | b'\r' | b'\n')) {
            let tag = tag(bytes, at).ok().flatten()?;
            let begin = tag.range.end;
            return if tag.kind == Kind::Begin { Some(begin..begin + find(bytes.get(begin..)?, end)?) } else { None };
        }
        from = at + start.len();
    }
}

/// Text without tags.
fn text_of(bytes: &[u8]) -> Vec<u8> {
    let mut is_inside = false;
    let mut text = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'<' => is_inside = true,
            b'>' => is_inside = false,
            _ if !is_inside => text.push(byte),
            _ => {}
        }
    }
    text
}

/// A stream's header.
fn probe(bytes: &[u8]) -> Likely {
    let is_stream = find(bytes.get(..bytes.len().min(400)).unwrap_or(&[]), b"<stream:stream").is_some();
    match bytes.first() {
        Some(b'<') if is_stream => Likely::Yes,
        Some(b'<') => Likely::Maybe,
        _ => Likely::No,
    }
}

/// Requests (iq) with their answers by id (RFC 6120 §8.2.3), messages with their deliveries to others.
#[derive(Debug, Default)]
struct Stanzas {
    requests: [FxHashMap<u64, ExchangeId>; 2],
}

impl Pairing for Stanzas {
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        match (message.kind, message.variant) {
            ("iq", "get" | "set") => self.request(message, from, at, exchanges),
            ("iq", _) => self.answer(message, from, at, exchanges),
            ("message", _) if message.payload_bytes > 0 => {
                let exchange = exchanges.open("message", message, from, at);
                carry(exchange, message, from, at, exchanges);
                exchanges.end(exchange, "complete");
                exchanges.forget(exchange);
                Placement { exchange: Some(exchange), is_data: true, ..Placement::default() }
            }
            _ => Placement::default(),
        }
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        let mut open: Vec<ExchangeId> =
            self.requests.iter_mut().flat_map(|requests| requests.drain().map(|(_, exchange)| exchange)).collect();
        open.sort_unstable();
        for exchange in open {
            exchanges.end(exchange, "unanswered");
            exchanges.forget(exchange);
        }
    }
}

/// A client's message may be delivered to others; a server's delivers one.
fn carry(exchange: ExchangeId, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) {
    if let Some(begun) = exchanges.get_mut(exchange) {
        begun.payload_bytes = message.payload_bytes.into();
    }
    match from {
        Side::Client => drop(exchanges.publish(exchange, message, at)),
        Side::Server => exchanges.deliver_publication(exchange, message, at, i64::MIN),
    }
}

impl Stanzas {
    fn request(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let has_data = message.payload_bytes > 0;
        let exchange = exchanges.open(if has_data { "iq publish" } else { "iq" }, message, from, at);
        if has_data {
            carry(exchange, message, from, at, exchanges);
        }
        if let Some(requests) = self.requests.get_mut(from.index()) {
            if let Some(old) = requests.insert(message.body_tag, exchange) {
                exchanges.end(old, "unanswered");
                exchanges.forget(old);
            }
        }
        Placement { exchange: Some(exchange), is_data: has_data, ..Placement::default() }
    }

    fn answer(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let found = self.requests.get_mut(from.peer().index()).and_then(|requests| requests.remove(&message.body_tag));
        let Some(exchange) = found else { return Placement::default() };
        exchanges.join(exchange, message, at);
        exchanges.respond(exchange, at);
        let wants_rows = exchanges.wants_rows();
        if let Some(answered) = exchanges.get_mut(exchange).filter(|_| wants_rows) {
            answered.result = message.variant.to_owned();
        }
        exchanges.end(exchange, "complete");
        exchanges.forget(exchange);
        Placement { exchange: Some(exchange), ..Placement::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> (Step, Message) {
        let mut message = Message::default();
        let step = Xmpp.next(Input::whole(bytes), Side::Client, &mut message);
        (step, message)
    }

    #[test]
    fn stanzas_end_with_their_element() {
        // after RFC 6121 §1.4: a message with a body
        let stanza = b"<message from='juliet@example.com/balcony' id='ktx72v49' to='romeo@example.net' type='chat' xml:lang='en'><body>Art thou not \
                       Romeo?</body></message>";
        let both = [&stanza[..], b"<presence/>"].concat();
        let (step, message) = decode(&both);

        assert_eq!(Step::Message { len: stanza.len() }, step);
        assert_eq!(("message", "chat", 19), (message.kind, message.variant, message.payload_bytes));
        assert_eq!(Step::NeedMore { at_least: 41 }, decode(&stanza[..40]).0);
    }

    #[test]
    fn stream_headers_stand_alone_and_quotes_do_not_end_tags() {
        let header = b"<?xml version='1.0'?><stream:stream to='a>b' version='1.0'>";
        let (step, message) = decode(&[&header[..], b"<iq/>"].concat());

        assert_eq!((Step::Message { len: header.len() }, "stream:stream"), (step, message.kind));
        assert_eq!((Step::Message { len: 16 }, "stream:stream"), (decode(b"</stream:stream>").0, decode(b"</stream:stream>").1.kind));
        assert_eq!(Some("tls"), decode(b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>").1.carries_on);
    }

    #[test]
    fn an_item_is_the_payload_of_a_publication() {
        let iq = b"<iq type=\"set\" id=\"1\"><pubsub><publish node=\"n\"><item><d>Hi</d></item></publish></pubsub></iq>";

        assert_eq!(("iq", "set", 9), (decode(iq).1.kind, decode(iq).1.variant, decode(iq).1.payload_bytes));
    }
}
