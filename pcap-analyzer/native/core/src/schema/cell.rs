//! The types a column may have, and how each becomes Arrow or a plain value.

use crate::packet::Address;
use arrow_array::builder::{BinaryBuilder, BooleanBuilder, ListBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::types::{Float64Type, Int64Type, UInt16Type, UInt32Type, UInt64Type, UInt8Type};
use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};
use std::fmt::Write as _;
use std::sync::Arc;

/// A cell's value without Arrow, for single rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    None,
    /// A number.
    Integer(i128),
    /// A number with a fraction.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Several values.
    List(Vec<Value>),
}

/// Text that may be absent and keeps its memory from row to row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    is_present: bool,
    text: String,
}

impl Text {
    /// The text, where present.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        self.is_present.then_some(self.text.as_str())
    }

    /// Replaces the text; bytes that are not UTF-8 become U+FFFD.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.set(text),
            Err(_) => self.set(&String::from_utf8_lossy(bytes)),
        }
    }

    /// Replaces the text.
    pub fn set(&mut self, text: &str) {
        self.start().push_str(text);
    }

    /// Replaces the text by bytes in hexadecimal, two digits each.
    pub fn set_hex(&mut self, bytes: &[u8]) {
        let text = self.start();
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
    }

    /// Makes the text present and empty, to be written to.
    pub fn start(&mut self) -> &mut String {
        self.is_present = true;
        self.text.clear();
        &mut self.text
    }

    /// The text to be added to, with `separator` before the addition where something stands there already.
    pub fn more(&mut self, separator: &str) -> &mut String {
        if !self.is_present {
            return self.start();
        }
        if !self.text.is_empty() {
            self.text.push_str(separator);
        }
        &mut self.text
    }
}

/// A type that a column may have.
pub trait Cell {
    /// Its Arrow type in words.
    const NAME: &'static str;
    /// What gathers it.
    type Builder: CellBuilder<Self>
    where
        Self: Sized;
    /// Makes the cell empty.
    fn reset(&mut self);
    /// Its value without Arrow.
    fn value(&self) -> Value;
}

/// Gathers the cells of one column.
pub trait CellBuilder<T: ?Sized>: Default {
    /// The Arrow field.
    fn field(name: &str) -> Field;
    /// Adds a cell.
    fn append(&mut self, cell: &T);
    /// The column so far; the builder is empty afterwards.
    fn finish(&mut self) -> ArrayRef;
}

macro_rules! number_cells {
    ($($kind:ty, $name:literal, $arrow:ty, $data_type:expr, $value:expr;)*) => {$(
        impl Cell for $kind {
            const NAME: &'static str = $name;
            type Builder = PrimitiveBuilder<$arrow>;
            #[inline]
            fn reset(&mut self) { *self = <$kind>::default(); }
            fn value(&self) -> Value { ($value)(*self) }
        }
        impl CellBuilder<$kind> for PrimitiveBuilder<$arrow> {
            fn field(name: &str) -> Field { Field::new(name, $data_type, false) }
            #[inline]
            fn append(&mut self, cell: &$kind) { self.append_value(*cell); }
            fn finish(&mut self) -> ArrayRef { Arc::new(Self::finish(self)) }
        }
        impl Cell for Option<$kind> {
            const NAME: &'static str = $name;
            type Builder = PrimitiveBuilder<$arrow>;
            #[inline]
            fn reset(&mut self) { *self = None; }
            fn value(&self) -> Value { self.map_or(Value::None, $value) }
        }
        impl CellBuilder<Option<$kind>> for PrimitiveBuilder<$arrow> {
            fn field(name: &str) -> Field { Field::new(name, $data_type, true) }
            #[inline]
            fn append(&mut self, cell: &Option<$kind>) { self.append_option(*cell); }
            fn finish(&mut self) -> ArrayRef { Arc::new(Self::finish(self)) }
        }
    )*};
}

number_cells! {
    u8, "uint8", UInt8Type, DataType::UInt8, |n: u8| Value::Integer(n.into());
    u16, "uint16", UInt16Type, DataType::UInt16, |n: u16| Value::Integer(n.into());
    u32, "uint32", UInt32Type, DataType::UInt32, |n: u32| Value::Integer(n.into());
    u64, "uint64", UInt64Type, DataType::UInt64, |n: u64| Value::Integer(n.into());
    i64, "int64", Int64Type, DataType::Int64, |n: i64| Value::Integer(n.into());
    f64, "float64", Float64Type, DataType::Float64, Value::Float;
}

impl Cell for bool {
    const NAME: &'static str = "bool";
    type Builder = BooleanBuilder;
    #[inline]
    fn reset(&mut self) {
        *self = false;
    }
    fn value(&self) -> Value {
        Value::Bool(*self)
    }
}

impl CellBuilder<bool> for BooleanBuilder {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Boolean, false)
    }
    #[inline]
    fn append(&mut self, cell: &bool) {
        self.append_value(*cell);
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(Self::finish(self))
    }
}

impl Cell for Option<bool> {
    const NAME: &'static str = "bool";
    type Builder = BooleanBuilder;
    #[inline]
    fn reset(&mut self) {
        *self = None;
    }
    fn value(&self) -> Value {
        self.map_or(Value::None, Value::Bool)
    }
}

impl CellBuilder<Option<bool>> for BooleanBuilder {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Boolean, true)
    }
    #[inline]
    fn append(&mut self, cell: &Option<bool>) {
        self.append_option(*cell);
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(Self::finish(self))
    }
}

macro_rules! text_cells {
    ($($kind:ty, $text:expr;)*) => {$(
        impl Cell for $kind {
            const NAME: &'static str = "utf8";
            type Builder = StringBuilder;
            #[inline]
            fn reset(&mut self) { text_cells!(@reset self, $kind) }
            fn value(&self) -> Value { ($text)(self).map_or(Value::None, |text: &str| Value::Text(text.to_owned())) }
        }
        impl CellBuilder<$kind> for StringBuilder {
            fn field(name: &str) -> Field { Field::new(name, DataType::Utf8, true) }
            #[inline]
            fn append(&mut self, cell: &$kind) { self.append_option(($text)(cell)); }
            fn finish(&mut self) -> ArrayRef { Arc::new(Self::finish(self)) }
        }
    )*};
    (@reset $self:ident, Text) => { $self.is_present = false };
    (@reset $self:ident, $kind:ty) => { *$self = <$kind>::default() };
}

text_cells! {
    Option<&'static str>, |cell: &Option<&'static str>| -> Option<&'static str> { *cell };
    Option<Arc<str>>, as_text;
}

fn as_text(cell: &Option<Arc<str>>) -> Option<&str> {
    cell.as_deref()
}

impl Cell for Text {
    const NAME: &'static str = "utf8";
    type Builder = StringBuilder;
    #[inline]
    fn reset(&mut self) {
        self.is_present = false;
    }
    fn value(&self) -> Value {
        self.get().map_or(Value::None, |text| Value::Text(text.to_owned()))
    }
}

impl CellBuilder<Text> for StringBuilder {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Utf8, true)
    }
    #[inline]
    fn append(&mut self, cell: &Text) {
        self.append_option(cell.get());
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(Self::finish(self))
    }
}

impl Cell for &'static str {
    const NAME: &'static str = "utf8";
    type Builder = StringBuilder;
    #[inline]
    fn reset(&mut self) {
        *self = "";
    }
    fn value(&self) -> Value {
        Value::Text((*self).to_owned())
    }
}

impl CellBuilder<&'static str> for StringBuilder {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Utf8, false)
    }
    #[inline]
    fn append(&mut self, cell: &&'static str) {
        self.append_value(cell);
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(Self::finish(self))
    }
}

impl Cell for Address {
    const NAME: &'static str = "utf8";
    type Builder = StringBuilder;
    #[inline]
    fn reset(&mut self) {
        *self = Self::default();
    }
    fn value(&self) -> Value {
        Value::Text(self.to_string())
    }
}

impl CellBuilder<Address> for StringBuilder {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Utf8, false)
    }
    fn append(&mut self, cell: &Address) {
        let _ = write!(self, "{cell}");
        self.append_value("");
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(Self::finish(self))
    }
}

impl Cell for Option<Vec<u8>> {
    const NAME: &'static str = "binary";
    type Builder = BinaryBuilder;
    fn reset(&mut self) {
        *self = None;
    }
    fn value(&self) -> Value {
        self.clone().map_or(Value::None, Value::Bytes)
    }
}

impl CellBuilder<Option<Vec<u8>>> for BinaryBuilder {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Binary, true)
    }
    fn append(&mut self, cell: &Option<Vec<u8>>) {
        self.append_option(cell.as_deref());
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(Self::finish(self))
    }
}

impl Cell for Vec<u64> {
    const NAME: &'static str = "list<uint64>";
    type Builder = ListBuilder<PrimitiveBuilder<UInt64Type>>;
    fn reset(&mut self) {
        self.clear();
    }
    fn value(&self) -> Value {
        Value::List(self.iter().map(|n| Value::Integer((*n).into())).collect())
    }
}

impl CellBuilder<Vec<u64>> for ListBuilder<PrimitiveBuilder<UInt64Type>> {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::List(Arc::new(Field::new("item", DataType::UInt64, true))), false)
    }
    fn append(&mut self, cell: &Vec<u64>) {
        self.values().append_slice(cell);
        self.append(true);
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(Self::finish(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_text_begins_anew_behind_a_reset() {
        let mut text = Text::default();
        text.more(",").push_str("of the row before");
        text.reset();
        text.more(",").push_str("one");
        text.more(",").push_str("two");

        assert_eq!(Some("one,two"), text.get());
    }
}
