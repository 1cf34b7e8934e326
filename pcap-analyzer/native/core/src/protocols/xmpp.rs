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
    decoder: |_| Box::<Xmpp>::default(),
    pairing: || Box::<Stanzas>::default(),
    wireshark: &[("xmpp.iq", "kind"), ("xmpp.message", "kind"), ("xmpp.presence", "kind"), ("xmpp.type", "variant")],
};

/// Elements at the top level of a stream (RFC 6120 §4, §5, §6, §8), or of a WebSocket (RFC 7395 §3.4, §3.6); of stream management (XEP-0198).
const ELEMENTS: [&str; 22] = [
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
    "open",
    "close",
    "enable",
    "enabled",
    "resume",
    "resumed",
    "r",
    "a",
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

/// Longest element that is waited for.
const MOST_ELEMENT: usize = 1 << 24;

#[derive(Debug, Default)]
struct Xmpp {
    /// How far what each side began was looked through.
    scans: [Scan; 2],
}

impl Decoder for Xmpp {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let bytes = input.bytes;
        let Some(scan) = self.scans.get_mut(from.index()) else { return Step::NeedMore { at_least: input.wire_bytes + 1 } };
        let measured = scan.measure(bytes);
        let malformed =
            |offset, field| Step::Malformed { len: input.wire_bytes, why: Malformed { offset, field, section: "RFC 6120 §4.1" } };
        let len = match measured {
            Ok(Some(len)) => len,
            Ok(None) if bytes.len() < input.wire_bytes => input.wire_bytes,
            Ok(None) if bytes.len() <= MOST_ELEMENT => return Step::NeedMore { at_least: input.wire_bytes + 1 },
            wrong => {
                *scan = Scan::default();
                return wrong.map_or_else(|offset| malformed(offset, "no element begins here"), |_| malformed(0, "element does not end"));
            }
        };
        *scan = Scan::default();
        show(bytes.get(..len).unwrap_or(bytes), len, message);
        Step::Message { len }
    }

    fn gap(&mut self, from: Side) {
        self.scans.get_mut(from.index()).into_iter().for_each(|scan| *scan = Scan::default());
    }

    fn is_boundary(&self, bytes: &[u8], _: Side) -> Option<bool> {
        Some(["<message", "<presence", "<iq", "<stream:", "<?xml"].iter().any(|start| bytes.starts_with(start.as_bytes())))
    }
}

/// How far an element was looked through, which comes in as many pieces as there are segments: no byte is looked at twice.
#[derive(Debug, Default)]
struct Scan {
    at: usize,
    depth: usize,
    is_in_tag: bool,
    tag: TagScan,
}

impl Scan {
    /// The length of what stands at the start: space, a stream's header (with an XML declaration) or footer, or a whole element.
    /// None where its end has not come; an offset where it is nothing of these.
    fn measure(&mut self, bytes: &[u8]) -> Result<Option<usize>, usize> {
        let space = if self.at == 0 { bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count() } else { 0 };
        if space > 0 {
            return Ok(Some(space));
        }
        loop {
            if !self.is_in_tag && !self.find_tag(bytes)? {
                return Ok(None);
            }
            let Some(tag) = self.tag.run(bytes, self.at) else { return Ok(None) };
            let is_stream = self.depth == 0 && name_of(bytes, &tag.range) == "stream:stream";
            match tag.kind {
                Kind::Begin if is_stream => return Ok(Some(tag.range.end)),
                Kind::Begin => self.depth += 1,
                Kind::End => self.depth = self.depth.saturating_sub(1),
                Kind::Empty | Kind::Other => {}
            }
            if self.depth == 0 && tag.kind != Kind::Other {
                return Ok(Some(tag.range.end));
            }
            (self.at, self.is_in_tag, self.tag) = (tag.range.end, false, TagScan::default());
        }
    }

    /// Goes to where the next tag begins. Outside of elements only space stands before it.
    fn find_tag(&mut self, bytes: &[u8]) -> Result<bool, usize> {
        let rest = bytes.get(self.at..).unwrap_or(&[]);
        let text = rest.iter().position(|&byte| byte == b'<').unwrap_or(rest.len());
        if self.depth == 0 && !rest.iter().take(text).all(u8::is_ascii_whitespace) {
            return Err(self.at);
        }
        self.at += text;
        self.is_in_tag = text < rest.len();
        Ok(self.is_in_tag)
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

/// How tags begin that are no tags, and how they end.
const OTHERS: [(&[u8], &[u8]); 3] = [(CDATA, b"]]>"), (b"<!--", b"-->"), (b"<?", b"?>")];
const CDATA: &[u8] = b"<![CDATA[";

/// How far a tag was looked through.
#[derive(Debug, Default)]
struct TagScan {
    offset: usize,
    quote: Option<u8>,
}

impl TagScan {
    /// The tag that begins at `at`, which quotes in attributes do not end. None where it has not ended.
    fn run(&mut self, bytes: &[u8], at: usize) -> Option<Tag> {
        let rest = bytes.get(at..).unwrap_or(&[]);
        for (start, end) in OTHERS {
            if rest.starts_with(start) {
                let from = self.offset.max(start.len());
                let found = rest.get(from..).and_then(|rest| find(rest, end));
                self.offset = rest.len().saturating_sub(end.len() - 1);
                return found.map(|found| Tag { kind: Kind::Other, range: at..at + from + found + end.len() });
            }
            if start.starts_with(rest) {
                return None;
            }
        }
        let end = rest.iter().skip(self.offset).position(|&byte| self.is_end(byte)).map(|end| self.offset + end);
        self.offset = rest.len();
        let end = end?;
        let kind = match (rest.get(1), end.checked_sub(1).and_then(|before| rest.get(before))) {
            (Some(b'/'), _) => Kind::End,
            (_, Some(b'/')) => Kind::Empty,
            _ => Kind::Begin,
        };
        Some(Tag { kind, range: at..at + end + 1 })
    }

    fn is_end(&mut self, byte: u8) -> bool {
        match (self.quote, byte) {
            (Some(open), _) if open == byte => self.quote = None,
            (None, b'"' | b'\'') => self.quote = Some(byte),
            (None, b'>') => return true,
            _ => {}
        }
        false
    }
}

/// The next tag from `at` on, where it has ended.
fn next_tag(bytes: &[u8], at: usize) -> Option<Tag> {
    let begin = bytes.get(at..)?.iter().position(|&byte| byte == b'<')?;
    TagScan::default().run(bytes, at + begin)
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
    let Some(first) = first_element(bytes) else {
        message.row.kind = "space";
        return;
    };
    let name = name_of(bytes, &first.range);
    message.row.kind = known(&ELEMENTS, name).unwrap_or("element");
    let text = bytes.get(first.range.clone()).and_then(|tag| std::str::from_utf8(tag).ok()).unwrap_or("");
    message.row.variant = attribute(text, "type").and_then(|word| known(&TYPES, word)).unwrap_or("");
    message.body_tag = attribute(text, "id").map_or(0, |id| hash(id.as_bytes()));
    message.facts.is_opening = (name == "stream:stream" && first.kind == Kind::Begin) || name == "open";
    message.carries_on = if name == "proceed" { Some("tls") } else { None };
    if first.kind == Kind::Begin && matches!(name, "message" | "iq") {
        show_content(bytes, first.range.end, message);
    }
}

/// The first tag that is one.
fn first_element(bytes: &[u8]) -> Option<Tag> {
    let mut tag = next_tag(bytes, 0)?;
    while tag.kind == Kind::Other {
        tag = next_tag(bytes, tag.range.end)?;
    }
    Some(tag)
}

/// The body's text, or the content of items.
fn show_content(bytes: &[u8], from: usize, message: &mut Message) {
    let contents = contents(bytes, from);
    let Some(first) = contents.first() else { return };
    let payload = contents.iter().map(|content| u32::try_from(content.len()).unwrap_or(u32::MAX)).sum();
    message.row.payload_bytes = payload;
    message.row.header_bytes -= payload;
    message.payload_range = first.clone();
    let all: Vec<u8> = contents.iter().filter_map(|content| bytes.get(content.clone())).flatten().copied().collect();
    // a server that carries an item on may write its quotes anew: what is compared is its text
    message.payload_digest = hash(&text_of(&all));
    message.subject_hash = hash(b"xmpp");
    if contents.len() > 1 {
        message.content = all;
    }
}

/// What stands in the first body of a message (RFC 6121 §5.2.3), or else in the items that are published or told of (XEP-0060 §7.1, §7.1.2).
fn contents(bytes: &[u8], from: usize) -> Vec<Range<usize>> {
    let (mut path, mut items): (Vec<&str>, Vec<Range<usize>>) = (Vec::new(), Vec::new());
    let (mut at, mut open) = (from, None);
    while let Some(tag) = next_tag(bytes, at) {
        at = tag.range.end;
        let name = name_of(bytes, &tag.range);
        match tag.kind {
            Kind::Begin => {
                let is_item = name == "item" && matches!(path.last(), Some(&("publish" | "items")));
                if open.is_none() && (is_item || (name == "body" && path.is_empty())) {
                    open = Some((path.len(), at));
                }
                path.push(name);
            }
            Kind::End if path.pop().is_none() => break,
            Kind::End => {
                if let Some((_, begin)) = open.take_if(|(depth, _)| *depth == path.len()) {
                    let content = begin..tag.range.start;
                    if path.is_empty() {
                        return vec![content];
                    }
                    items.push(content);
                }
            }
            Kind::Empty | Kind::Other => {}
        }
    }
    items
}

/// Predefined entities (XML 1.0 §4.6).
const ENTITIES: [(&[u8], u8); 5] = [(b"&lt;", b'<'), (b"&gt;", b'>'), (b"&amp;", b'&'), (b"&apos;", b'\''), (b"&quot;", b'"')];

/// Text without tags, as it was before it was escaped.
fn text_of(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, behind)) = rest.split_first() {
        let entity = ENTITIES.iter().find(|(entity, _)| first == b'&' && rest.starts_with(entity));
        rest = match (first, entity) {
            (b'<', _) => {
                let Some(tag) = TagScan::default().run(rest, 0) else { return text };
                let (tag, after) = rest.split_at_checked(tag.range.end).unwrap_or((rest, &[]));
                text.extend_from_slice(tag.strip_prefix(CDATA).and_then(|inside| inside.strip_suffix(b"]]>")).unwrap_or(&[]));
                after
            }
            (_, Some((entity, byte))) => {
                text.push(*byte);
                rest.get(entity.len()..).unwrap_or(&[])
            }
            _ => {
                text.push(first);
                behind
            }
        };
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
                Placement { is_data: true, ..Placement::of(exchange) }
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
        Placement { is_data: has_data, ..Placement::of(exchange) }
    }

    fn answer(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let found = self.requests.get_mut(from.peer().index()).and_then(|requests| requests.remove(&message.body_tag));
        let Some(exchange) = found else { return Placement::UNMATCHED };
        exchanges.join(exchange, message, at);
        exchanges.respond(exchange, at);
        let wants_rows = exchanges.wants_rows();
        if let Some(answered) = exchanges.get_mut(exchange).filter(|_| wants_rows) {
            answered.result = message.variant.to_owned();
        }
        exchanges.end(exchange, "complete");
        exchanges.forget(exchange);
        Placement::of(exchange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> (Step, Message) {
        let mut message = Message::default();
        let step = Xmpp::default().next(Input::whole(bytes), Side::Client, &mut message);
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

    #[test]
    fn only_the_body_of_the_message_and_items_of_publications_are_payload() {
        let roster = b"<iq type='set' id='1'><query xmlns='jabber:iq:roster'><item jid='a@b'><group>Friends</group></item></query></iq>";
        let told =
            b"<message><event><items node='n'><item id='1'><d>A</d></item><item id='2'><item>B</item></item></items></event></message>";
        // XEP-0071 §8: the body in <html/> is another one
        let rich = b"<message><html><body><p>Hi there</p></body></html><body>Hi</body></message>";
        // XML 1.0 §2.7: no markup in a CDATA section; §2.5: nor in a comment
        let quoted = b"<message><!-- <body> --><body>a<![CDATA[</body></message>]]>z</body></message>";

        let payloads = [&roster[..], told, rich, quoted].map(|stanza| (decode(stanza).0, decode(stanza).1.payload_bytes));

        let lengths = [roster.len(), told.len(), rich.len(), quoted.len()];
        assert_eq!(lengths.map(|len| Step::Message { len }), payloads.map(|(step, _)| step));
        assert_eq!([0, 8 + 14, 2, 31], payloads.map(|(_, payload)| payload));
    }

    #[test]
    fn text_is_the_same_however_it_is_escaped() {
        // XML 1.0 §2.4, §2.7, §4.6
        let digests = [&b"{\"a\": 'b' > 1}"[..], b"{&quot;a&quot;: &apos;b&apos; &gt; 1}", b"<![CDATA[{\"a\": 'b' > 1}]]>"]
            .map(|text| decode(&[b"<message><body>", text, b"</body></message>"].concat()).1.payload_digest);

        assert!(digests.iter().all(|digest| *digest == digests[0]));
    }

    #[test]
    fn an_element_may_come_in_any_pieces_and_no_byte_is_looked_at_twice() {
        let mut large = b"<message note='".to_vec();
        large.extend(std::iter::repeat_n(b'>', 1 << 21));
        large.extend(b"'><!--");
        large.extend(std::iter::repeat_n(b'-', 1 << 21));
        large.extend(b"--><body>");
        large.extend(std::iter::repeat_n(b'x', 1 << 21));
        large.extend(b"</body></message>");
        let small = &b"<a b=\"'>\"><![CDATA[</a>]]]]><!-- > --><?c >?><d/></a>"[..];

        for (whole, piece) in [(large.as_slice(), 1448), (small, 1), (small, 2), (small, 7)] {
            let mut xmpp = Xmpp::default();
            let mut answers = (1..=whole.len().div_ceil(piece)).map(|pieces| {
                let bytes = whole.get(..whole.len().min(pieces * piece)).unwrap_or(&[]);
                xmpp.next(Input::whole(bytes), Side::Client, &mut Message::default())
            });
            let first = answers.find(|answer| !matches!(answer, Step::NeedMore { .. }));

            assert_eq!((Some(Step::Message { len: whole.len() }), None), (first, answers.next()));
        }
    }

    #[test]
    fn an_element_that_does_not_end_is_given_up() {
        let mut endless = b"<message><body>".to_vec();
        endless.resize(MOST_ELEMENT + 1, b'x');

        assert!(matches!(decode(&endless).0, Step::Malformed { len, .. } if len == endless.len()));
    }
}
