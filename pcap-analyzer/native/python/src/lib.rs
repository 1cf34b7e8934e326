//! Classes and Arrow streams of pcapstat-core for Python; no logic lives here.

use arrow_array::ffi::to_ffi;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use pcapstat_core::capture::{self, Input};
use pcapstat_core::error::{Error, ErrorKind};
use pcapstat_core::message::Side;
use pcapstat_core::note::NOTES;
use pcapstat_core::pipeline::{self, tables, NoRows, Options, Outcome};
use pcapstat_core::protocols::{Carrier, DecodeAs, Decoding, Framing, Port, PROTOCOLS};
use pcapstat_core::schema::{Value, TABLES};
use pcapstat_core::sessions::Choices;
use pcapstat_core::share::Share;
use pyo3::exceptions::{PyException, PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::PoisonError;
use std::time::Duration;

pyo3::create_exception!(
    _native,
    NativeError,
    PyException,
    "A capture that cannot be read: kind, path, offset, frame, cause and remedy are attributes."
);

fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let raised = NativeError::new_err(error.to_string());
    let kind = match error.kind {
        ErrorKind::Unreadable => "unreadable",
        ErrorKind::Empty => "empty",
        ErrorKind::NotACapture => "not-a-capture",
        ErrorKind::UnknownVersion => "unknown-version",
        ErrorKind::CutShort => "cut-short",
        ErrorKind::Damaged => "damaged",
        ErrorKind::Tool => "tool",
    };
    let set = || -> PyResult<()> {
        let value = raised.value(py);
        value.setattr("kind", kind)?;
        value.setattr("path", &error.path)?;
        value.setattr("offset", error.offset)?;
        value.setattr("frame", error.frame)?;
        value.setattr("cause", &error.cause)?;
        value.setattr("remedy", error.remedy)
    };
    set().err().unwrap_or(raised)
}

fn to_python<'py>(py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::None => py.None().into_bound(py),
        Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => number.into_pyobject(py)?.into_any(),
        Value::Bool(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
        Value::List(values) => {
            let items = values.into_iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
    })
}

fn row<'py>(py: Python<'py>, values: Vec<(&'static str, Value)>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in values {
        dict.set_item(name, to_python(py, value)?)?;
    }
    Ok(dict)
}

fn rows<'py>(py: Python<'py>, rows: impl Iterator<Item = Vec<(&'static str, Value)>>) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, rows.map(|values| row(py, values)).collect::<PyResult<Vec<_>>>()?)
}

/// Version of the core.
#[pyfunction]
const fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// All tables with their columns: name, `data_type`, unit, doc.
#[pyfunction]
fn schema(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let text = |text: &str| Value::Text(text.trim().to_owned());
    let described = TABLES.iter().map(|table| {
        let columns = rows(
            py,
            table.columns.iter().map(|column| {
                vec![
                    ("name", text(column.name)),
                    ("data_type", text(column.data_type)),
                    ("unit", text(column.unit)),
                    ("doc", text(column.doc)),
                ]
            }),
        )?;
        let dict = row(py, vec![("name", text(table.name)), ("doc", text(table.doc))])?;
        dict.set_item("columns", columns)?;
        Ok(dict)
    });
    PyList::new(py, described.collect::<PyResult<Vec<_>>>()?)
}

/// All protocols: name, `decode_as`, standards, carrier, ports, Wireshark's field names with our columns.
#[pyfunction]
fn protocols(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let text = |text: &str| Value::Text(text.to_owned());
    rows(
        py,
        PROTOCOLS.iter().map(|protocol| {
            let carrier = match protocol.carrier {
                Carrier::Datagram => "datagram",
                Carrier::Stream => "stream",
            };
            let port = |port: &Port| match port {
                Port::Udp(number) => Value::Text(format!("udp.port=={number}")),
                Port::Tcp(number) => Value::Text(format!("tcp.port=={number}")),
                Port::Tls(number) => Value::Text(format!("tls.port=={number}")),
                Port::Dtls(number) => Value::Text(format!("dtls.port=={number}")),
            };
            let wireshark = protocol.wireshark.iter().map(|(field, column)| Value::List(vec![text(field), text(column)]));
            vec![
                ("name", text(protocol.name)),
                ("decode_as", text(protocol.decode_as)),
                ("standards", Value::List(protocol.standards.iter().map(|standard| text(standard)).collect())),
                ("carrier", text(carrier)),
                ("ports", Value::List(protocol.ports.iter().map(port).collect())),
                ("wireshark", Value::List(wireshark.collect())),
            ]
        }),
    )
}

/// All kinds of notes: note, text, affects.
#[pyfunction]
fn note_kinds(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let text = |text: &str| Value::Text(text.to_owned());
    rows(py, NOTES.iter().map(|kind| vec![("note", text(kind.id)), ("text", text(kind.text)), ("affects", text(kind.affects))]))
}

/// The messages in bytes that come from no capture, as rows of the table messages.
#[pyfunction]
#[pyo3(signature = (protocol, data, from_client = true))]
fn decode<'py>(py: Python<'py>, protocol: &str, data: &[u8], from_client: bool) -> PyResult<Bound<'py, PyList>> {
    let from = if from_client { Side::Client } else { Side::Server };
    let (messages, _) = pipeline::decode(protocol, data, from, &Decoding::default())
        .ok_or_else(|| PyValueError::new_err(format!("no protocol \"{protocol}\"; pcapstat schema lists them")))?;
    rows(py, messages.iter().map(pcapstat_core::schema::messages::Row::values))
}

/// The TLS key logs embedded in captures: those ahead of the first frame, or all.
#[pyfunction]
#[pyo3(signature = (paths, wants_all = false))]
fn embedded_secrets<'py>(py: Python<'py>, paths: Vec<String>, wants_all: bool) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let inputs = paths.iter().map(|path| Input::named(path)).collect();
    let secrets = interruptible(py, move || capture::embedded_secrets(inputs, wants_all))?.map_err(|error| raise(py, &error))?;
    Ok(secrets.iter().map(|secret| PyBytes::new(py, secret)).collect())
}

/// How long work goes on before it is asked for signals.
const PATIENCE: Duration = Duration::from_millis(100);

/// Does work that may take long, or wait for a pipe, in a thread of its own; here signals are looked at meanwhile. A user who stops it leaves the thread
/// behind, which ends with the process.
fn interruptible<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let thread = std::thread::Builder::new().spawn(move || sender.send(work()))?;
    loop {
        let waited;
        (waited, receiver) = py.detach(move || (receiver.recv_timeout(PATIENCE), receiver));
        match waited {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(_) => return Err(PyRuntimeError::new_err("a thread failed")),
            },
        }
    }
}

/// The next batch of a pass; who waits for one can be interrupted.
fn next_batch(batches: &tables::Batches) -> Option<tables::TableBatch> {
    loop {
        match batches.receive(PATIENCE) {
            Ok(batch) => return Some(batch),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if Python::attach(interrupted) {
            return Some(("", Err(ArrowError::ExternalError("interrupted".into()))));
        }
    }
}

/// The batches of one table.
struct Rows {
    schema: SchemaRef,
    batches: tables::Batches,
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        next_batch(&self.batches).map(|(_, batch)| batch)
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}

/// Whether the user wants to stop; Python then raises it where it goes on.
fn interrupted(py: Python<'_>) -> bool {
    let is_interrupted = py.check_signals().is_err();
    if is_interrupted {
        // where this fails, the error that the stream ends with is what the user sees
        let _ = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
    }
    is_interrupted
}

fn framing(length: Option<usize>, delimiter: Option<Vec<u8>>) -> PyResult<Framing> {
    match (length, delimiter) {
        (None, None) => Ok(Framing::Unknown),
        (Some(length), None) if length > 0 => Ok(Framing::Length(length)),
        (None, Some(delimiter)) => {
            Framing::delimiter(&delimiter).ok_or_else(|| PyValueError::new_err("--frame-delimiter: no delimiter of 1 to 8 bytes"))
        }
        _ => Err(PyValueError::new_err("--frame-length and --frame-delimiter: one of them, and a length of 1 or more")),
    }
}

/// A capture to be read, in one or several files. Each call makes one pass.
#[pyclass(frozen)]
struct Reader {
    paths: Vec<String>,
    /// What messages and rows call the first path, where that is a copy of what the user named.
    name: Option<String>,
    options: Options,
}

#[pymethods]
impl Reader {
    #[new]
    #[pyo3(signature = (paths, *, decode_as = vec![], stop_after = None, payload_size = None, receiver = None, mqtt_version = None, frame_length = None, frame_delimiter = None, show_payload = false, show_secrets = false, tshark = None, is_filtered = false, name = None, share = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        paths: Vec<String>,
        decode_as: Vec<String>,
        stop_after: Option<u64>,
        payload_size: Option<u32>,
        receiver: Option<&str>,
        mqtt_version: Option<u8>,
        frame_length: Option<usize>,
        frame_delimiter: Option<Vec<u8>>,
        show_payload: bool,
        show_secrets: bool,
        tshark: Option<Vec<String>>,
        is_filtered: bool,
        name: Option<String>,
        share: Option<(u32, u32)>,
    ) -> PyResult<Self> {
        let decode_as = decode_as.iter().map(|rule| DecodeAs::parse(rule)).collect::<Result<_, _>>().map_err(PyValueError::new_err)?;
        let receiver = match receiver {
            None => None,
            Some("client") => Some(Side::Client),
            Some("server") => Some(Side::Server),
            Some(_) => return Err(PyValueError::new_err("--receiver: client or server")),
        };
        let choices = Choices { stop_after, payload_size_bytes: payload_size, receiver };
        let decoding = Decoding { mqtt_version, framing: framing(frame_length, frame_delimiter)? };
        let share = share
            .map(|(index, count)| Share::new(index, count).ok_or_else(|| PyValueError::new_err("share: an index below the count")))
            .transpose()?;
        let options =
            Options { decode_as, choices, decoding, show_payload, show_secrets, tshark, is_filtered, share, ..Options::default() };
        Ok(Self { paths, name, options })
    }

    /// Number of the frame that the pass under way has come to.
    #[getter]
    fn frame(&self) -> u64 {
        self.options.frame.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// One pass; the sums of all sessions.
    fn sums(&self, py: Python<'_>) -> PyResult<Sums> {
        let (inputs, options) = (self.inputs(), self.options.clone());
        let outcome = interruptible(py, move || pipeline::run(inputs, &options, &mut NoRows))?.map_err(|error| raise(py, &error))?;
        Ok(Sums { outcome })
    }

    /// Rows of the table captures, by a reading that looks into no frame.
    fn captures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let inputs = self.inputs();
        let files = interruptible(py, move || capture::files(inputs))?.map_err(|error| raise(py, &error))?;
        rows(py, files.iter().map(|file| pipeline::capture_row(file).values()))
    }

    /// One pass that fills tables; it tells all that it noted where that is wanted. With one table it is an Arrow stream of its rows.
    #[pyo3(signature = (names, wants_notes = false))]
    fn tables(&self, py: Python<'_>, names: Vec<String>, wants_notes: bool) -> PyResult<ArrowStream> {
        let found = |name: &String| TABLES.iter().map(|table| table.name).find(|table| table == name);
        let unknown = |name: &String| PyValueError::new_err(format!("no table \"{name}\""));
        let tables = names.iter().map(|name| found(name).ok_or_else(|| unknown(name))).collect::<PyResult<Vec<_>>>()?;
        let inputs = self.inputs();
        let source = interruptible(py, move || capture::open(inputs))?.map_err(|error| raise(py, &error))?;
        let (batches, end) = py.detach(|| tables::start(source, self.options.clone(), tables.clone(), wants_notes));
        Ok(ArrowStream { tables, batches: std::sync::Mutex::new(Some(batches)), end })
    }
}

impl Reader {
    fn inputs(&self) -> Vec<Input> {
        let copy = self.name.iter().zip(&self.paths).map(|(name, path)| Input::Copy(name.clone(), path.into()));
        let others = self.paths.iter().skip(usize::from(self.name.is_some())).map(|path| Input::named(path));
        copy.chain(others).collect()
    }
}

/// What one pass added up; rows become dictionaries when they are asked for, so that many sessions cost nothing that nobody looks at.
#[pyclass(frozen)]
struct Sums {
    outcome: Outcome,
}

impl Drop for Sums {
    fn drop(&mut self) {
        pipeline::free_later(std::mem::take(&mut self.outcome));
    }
}

#[pymethods]
impl Sums {
    /// Sessions.
    fn __len__(&self) -> usize {
        self.outcome.sessions.len()
    }

    /// A session's rows: "session", and lists of "directions", "kinds", "timings" and "notes".
    fn session<'py>(&self, py: Python<'py>, number: u32) -> PyResult<Bound<'py, PyDict>> {
        let session = self.outcome.sessions.get(number).ok_or_else(|| PyIndexError::new_err(format!("no session {number}")))?;
        let dict = PyDict::new(py);
        dict.set_item("session", row(py, session.session_row().values())?)?;
        dict.set_item("directions", rows(py, session.direction_rows().map(|row| row.values()))?)?;
        dict.set_item("kinds", rows(py, self.outcome.sessions.kind_rows(session).map(|row| row.values()))?)?;
        dict.set_item("timings", rows(py, session.timing_rows().map(|row| row.values()))?)?;
        dict.set_item("notes", rows(py, self.outcome.notes_of(Some(number)).map(|row| row.values()))?)?;
        Ok(dict)
    }

    /// Numbers of the sessions with the most bytes on the wire, in the order of their numbers.
    fn largest(&self, count: usize) -> Vec<u32> {
        self.outcome.sessions.largest(count)
    }

    /// All sessions added up: `data_messages`, `data_bytes`, and by part `parts` and `control_parts`.
    fn total<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let total = self.outcome.sessions.total();
        let list = |parts: &[u64]| Value::List(parts.iter().map(|&part| number(part)).collect());
        let cells = vec![
            ("data_messages", number(total.data_messages)),
            ("data_bytes", number(total.data_bytes)),
            ("parts", list(&total.parts)),
            ("control_parts", list(&total.control_parts)),
        ];
        row(py, cells)
    }

    /// Messages.
    #[getter]
    const fn messages(&self) -> u64 {
        self.outcome.messages
    }

    /// Rows of the table captures.
    #[getter]
    fn captures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        rows(py, self.outcome.capture_rows().map(|row| row.values()))
    }

    /// Rows of the table notes about the capture.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        rows(py, self.outcome.notes_of(None).map(|row| row.values()))
    }

    /// Whether there is a note about any session.
    #[getter]
    fn has_session_notes(&self) -> bool {
        self.outcome.notes.rows().any(|note| note.session.is_some())
    }

    /// Frames in no session: protocol, frames, bytes.
    #[getter]
    fn others<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let others = self.outcome.others.iter().map(|(protocol, (frames, bytes))| {
            vec![("protocol", Value::Text((*protocol).to_owned())), ("frames", number(*frames)), ("bytes", number(*bytes))]
        });
        rows(py, others)
    }

    /// Ports of the streams whose protocol is not known: transport, port, packets, bytes.
    #[getter]
    fn unmatched_ports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let ports = self.outcome.unmatched_ports.iter().map(|((transport, port), (packets, bytes))| {
            let transport = Value::Text((*transport).to_owned());
            vec![("transport", transport), ("port", number((*port).into())), ("packets", number(*packets)), ("bytes", number(*bytes))]
        });
        rows(py, ports)
    }
}

fn number(number: u64) -> Value {
    Value::Integer(number.into())
}

/// Tables on their way: by Arrow's PyCapsule interface where it is one, which can be taken once; or batch by batch, each with its table's name.
#[pyclass(frozen)]
struct ArrowStream {
    tables: Vec<&'static str>,
    batches: std::sync::Mutex<Option<tables::Batches>>,
    end: tables::Ended,
}

#[pymethods]
impl ArrowStream {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(&self, py: Python<'py>, requested_schema: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let [table] = self.tables[..] else { return Err(PyValueError::new_err("rows of several tables: take their batches")) };
        let schema = tables::schema(table).ok_or_else(|| PyValueError::new_err(format!("no table \"{table}\"")))?;
        let batches = self.batches.lock().ok().and_then(|mut batches| batches.take());
        let batches = batches.ok_or_else(|| PyRuntimeError::new_err("the stream was taken already; ask for the table again"))?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(Rows { schema, batches })), c"arrow_array_stream")
    }

    const fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<(&'static str, Batch)>> {
        let next = py.detach(|| {
            let batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
            batches.as_ref().and_then(next_batch)
        });
        let Some((table, batch)) = next else { return Ok(None) };
        let batch = batch.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Some((table, Batch(batch))))
    }

    /// What damaged inputs had to say, one line each; complete once the stream has ended.
    #[getter]
    fn damage(&self) -> Vec<String> {
        self.end.lock().map(|end| end.damage.clone()).unwrap_or_default()
    }

    /// Whether the pass noted anything that the capture does not show; complete once the stream has ended.
    #[getter]
    fn has_notes(&self) -> bool {
        self.end.lock().is_ok_and(|end| end.has_notes)
    }

    /// How many sessions the pass found; complete once the stream has ended.
    #[getter]
    fn sessions(&self) -> u32 {
        self.end.lock().map_or(0, |end| end.sessions)
    }

    /// What ended the stream early, where anything did; a `NativeError` that is not raised.
    #[getter]
    fn failure(&self, py: Python<'_>) -> Option<PyErr> {
        self.end.lock().ok().and_then(|end| end.failure.as_ref().map(|error| raise(py, error)))
    }
}

/// Some rows of a table, by Arrow's PyCapsule interface.
#[pyclass(frozen)]
struct Batch(RecordBatch);

#[pymethods]
impl Batch {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let failed = |error: ArrowError| PyRuntimeError::new_err(error.to_string());
        let (array, schema) = to_ffi(&StructArray::from(self.0.clone()).to_data()).map_err(failed)?;
        Ok((PyCapsule::new_with_value(py, schema, c"arrow_schema")?, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }
}

/// The native core of pcapstat.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NativeError", module.py().get_type::<NativeError>())?;
    module.add_class::<Reader>()?;
    module.add_class::<Sums>()?;
    module.add_class::<ArrowStream>()?;
    module.add_class::<Batch>()?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(protocols, module)?)?;
    module.add_function(wrap_pyfunction!(note_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(decode, module)?)?;
    module.add_function(wrap_pyfunction!(embedded_secrets, module)?)?;
    Ok(())
}
