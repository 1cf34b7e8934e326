//! The types a column may have, and how each becomes Arrow or a plain value.

use super::words::Words;
use crate::packet::Address;
use arrow_array::builder::{ArrayBuilder, BinaryBuilder, BooleanBuilder, GenericByteBuilder, ListBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::types::{ByteArrayType, Float64Type, Int64Type, UInt16Type, UInt32Type, UInt64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field};
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

/// Adds bytes in hexadecimal, two digits each.
pub fn push_hex(text: &mut String, bytes: &[u8]) {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]);
    text.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
}

/// Text that may be absent and keeps its memory from row to row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    is_present: bool,
    /// Most texts of most rows are never there: such a one takes no more room than to say so.
    #[allow(clippy::box_collection)]
    text: Option<Box<String>>,
}

impl Text {
    /// The text, where present.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        if self.is_present {
            self.text.as_deref().map(String::as_str)
        } else {
            None
        }
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
        push_hex(self.start(), bytes);
    }

    /// Makes the text present and empty, to be written to.
    pub fn start(&mut self) -> &mut String {
        self.is_present = true;
        let text = self.text.get_or_insert_default();
        text.clear();
        text
    }

    /// The text to be added to, with `separator` before the addition where something stands there already.
    pub fn more(&mut self, separator: &str) -> &mut String {
        if !self.is_present {
            return self.start();
        }
        let text = self.text.get_or_insert_default();
        if !text.is_empty() {
            text.push_str(separator);
        }
        text
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
    /// Adds the cell of a row, by its number since the last batch.
    fn append(&mut self, row: usize, cell: &T);
    /// The column of so many rows; the builder is empty afterwards.
    fn finish(&mut self, rows: usize) -> ArrayRef;
}

/// A builder that can be told of several rows without a value at once.
pub trait Nulls: ArrayBuilder + Default {
    /// So many rows without a value.
    fn append_nulls(&mut self, count: usize);
}

impl<T: ArrowPrimitiveType> Nulls for PrimitiveBuilder<T> {
    fn append_nulls(&mut self, count: usize) {
        Self::append_nulls(self, count);
    }
}

impl Nulls for BooleanBuilder {
    fn append_nulls(&mut self, count: usize) {
        Self::append_nulls(self, count);
    }
}

impl<T: ByteArrayType> Nulls for GenericByteBuilder<T> {
    fn append_nulls(&mut self, count: usize) {
        Self::append_nulls(self, count);
    }
}

/// A builder for a column that is empty in most rows, or in all: a row without a value costs nothing, but is made up for when a value comes behind it, or
/// the batch ends.
#[derive(Debug, Default)]
pub struct Sparse<B> {
    builder: B,
    /// The last column without any value: the next one is the same as a rule.
    nothing: Option<ArrayRef>,
}

impl<B: Nulls> Sparse<B> {
    /// Adds a row, its value by `append`.
    #[inline]
    fn put<V>(&mut self, row: usize, value: Option<V>, append: impl FnOnce(&mut B, V)) {
        if let Some(value) = value {
            self.put_value(row, value, append);
        }
    }

    /// Not inlined: a row's many cells without a value are then passed over without a call.
    #[inline(never)]
    fn put_value<V>(&mut self, row: usize, value: V, append: impl FnOnce(&mut B, V)) {
        self.catch_up(row);
        append(&mut self.builder, value);
    }

    /// Makes up for the rows without a value before row `row`.
    #[inline]
    fn catch_up(&mut self, row: usize) {
        let missing = row - self.builder.len();
        if missing > 0 {
            self.builder.append_nulls(missing);
        }
    }

    fn column(&mut self, rows: usize) -> ArrayRef {
        let is_empty = self.builder.is_empty();
        if let Some(nothing) = self.nothing.as_ref().filter(|nothing| is_empty && nothing.len() == rows) {
            return Arc::clone(nothing);
        }
        self.catch_up(rows);
        let column = ArrayBuilder::finish(&mut self.builder);
        if is_empty {
            self.nothing = Some(Arc::clone(&column));
        }
        column
    }
}

/// Numbers, one in every row.
#[derive(Debug)]
pub struct Numbers<A: ArrowPrimitiveType>(Vec<A::Native>);

impl<A: ArrowPrimitiveType> Default for Numbers<A> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<A: ArrowPrimitiveType> Numbers<A> {
    /// The column; the next one is thought to be as long.
    fn column(&mut self) -> PrimitiveArray<A> {
        let room = Vec::with_capacity(self.0.len());
        PrimitiveArray::new(std::mem::replace(&mut self.0, room).into(), None)
    }
}

macro_rules! number_cells {
    ($($kind:ty, $name:literal, $arrow:ty, $data_type:expr, $value:expr;)*) => {$(
        impl Cell for $kind {
            const NAME: &'static str = $name;
            type Builder = Numbers<$arrow>;
            #[inline]
            fn reset(&mut self) { *self = <$kind>::default(); }
            fn value(&self) -> Value { ($value)(*self) }
        }
        impl CellBuilder<$kind> for Numbers<$arrow> {
            fn field(name: &str) -> Field { Field::new(name, $data_type, false) }
            #[inline]
            fn append(&mut self, _: usize, cell: &$kind) { self.0.push(*cell); }
            fn finish(&mut self, _: usize) -> ArrayRef { Arc::new(self.column()) }
        }
        impl Cell for Option<$kind> {
            const NAME: &'static str = $name;
            type Builder = Sparse<PrimitiveBuilder<$arrow>>;
            #[inline]
            fn reset(&mut self) { *self = None; }
            fn value(&self) -> Value { self.map_or(Value::None, $value) }
        }
        impl CellBuilder<Option<$kind>> for Sparse<PrimitiveBuilder<$arrow>> {
            fn field(name: &str) -> Field { Field::new(name, $data_type, true) }
            #[inline]
            fn append(&mut self, row: usize, cell: &Option<$kind>) { self.put(row, *cell, PrimitiveBuilder::append_value); }
            fn finish(&mut self, rows: usize) -> ArrayRef { self.column(rows) }
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
    type Builder = Vec<bool>;
    #[inline]
    fn reset(&mut self) {
        *self = false;
    }
    fn value(&self) -> Value {
        Value::Bool(*self)
    }
}

impl CellBuilder<bool> for Vec<bool> {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Boolean, false)
    }
    #[inline]
    fn append(&mut self, _: usize, cell: &bool) {
        self.push(*cell);
    }
    fn finish(&mut self, _: usize) -> ArrayRef {
        let column = BooleanArray::from(BooleanBuffer::from(self.as_slice()));
        self.clear();
        Arc::new(column)
    }
}

impl Cell for Option<bool> {
    const NAME: &'static str = "bool";
    type Builder = Sparse<BooleanBuilder>;
    #[inline]
    fn reset(&mut self) {
        *self = None;
    }
    fn value(&self) -> Value {
        self.map_or(Value::None, Value::Bool)
    }
}

impl CellBuilder<Option<bool>> for Sparse<BooleanBuilder> {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Boolean, true)
    }
    #[inline]
    fn append(&mut self, row: usize, cell: &Option<bool>) {
        self.put(row, *cell, BooleanBuilder::append_value);
    }
    fn finish(&mut self, rows: usize) -> ArrayRef {
        self.column(rows)
    }
}

impl Cell for Text {
    const NAME: &'static str = "utf8";
    type Builder = Sparse<StringBuilder>;
    #[inline]
    fn reset(&mut self) {
        self.is_present = false;
    }
    fn value(&self) -> Value {
        self.get().map_or(Value::None, |text| Value::Text(text.to_owned()))
    }
}

impl CellBuilder<Text> for Sparse<StringBuilder> {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Utf8, true)
    }
    #[inline]
    fn append(&mut self, row: usize, cell: &Text) {
        self.put(row, cell.get(), |builder, text| builder.append_value(text));
    }
    fn finish(&mut self, rows: usize) -> ArrayRef {
        self.column(rows)
    }
}

macro_rules! word_cells {
    ($($kind:ty, $empty:expr;)*) => {$(
        impl Cell for $kind {
            const NAME: &'static str = "utf8";
            type Builder = Words<$kind>;
            #[inline]
            fn reset(&mut self) { *self = $empty; }
            fn value(&self) -> Value { Value::Text(self.to_string()) }
        }
        impl CellBuilder<$kind> for Words<$kind> {
            fn field(name: &str) -> Field { Field::new(name, DataType::Utf8, false) }
            #[inline]
            fn append(&mut self, _: usize, cell: &$kind) { self.put(cell); }
            fn finish(&mut self, _: usize) -> ArrayRef { Arc::new(self.column()) }
        }
    )*};
}

word_cells! {
    &'static str, "";
    Address, Self::default();
}

impl Cell for Option<Arc<str>> {
    const NAME: &'static str = "utf8";
    type Builder = Words<Arc<str>>;
    #[inline]
    fn reset(&mut self) {
        *self = None;
    }
    fn value(&self) -> Value {
        self.as_deref().map_or(Value::None, |text| Value::Text(text.to_owned()))
    }
}

impl CellBuilder<Option<Arc<str>>> for Words<Arc<str>> {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Utf8, true)
    }
    #[inline]
    fn append(&mut self, _: usize, cell: &Option<Arc<str>>) {
        match cell {
            Some(text) => self.put(text),
            None => self.put_none(1),
        }
    }
    fn finish(&mut self, _: usize) -> ArrayRef {
        Arc::new(self.column())
    }
}

impl Cell for Option<Vec<u8>> {
    const NAME: &'static str = "binary";
    type Builder = Sparse<BinaryBuilder>;
    fn reset(&mut self) {
        *self = None;
    }
    fn value(&self) -> Value {
        self.clone().map_or(Value::None, Value::Bytes)
    }
}

impl CellBuilder<Option<Vec<u8>>> for Sparse<BinaryBuilder> {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Binary, true)
    }
    #[inline]
    fn append(&mut self, row: usize, cell: &Option<Vec<u8>>) {
        self.put(row, cell.as_deref(), BinaryBuilder::append_value);
    }
    fn finish(&mut self, rows: usize) -> ArrayRef {
        self.column(rows)
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
    fn append(&mut self, _: usize, cell: &Vec<u64>) {
        self.values().append_slice(cell);
        self.append(true);
    }
    fn finish(&mut self, _: usize) -> ArrayRef {
        Arc::new(Self::finish(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_value_stand_where_they_came() {
        let mut builder = Sparse::<PrimitiveBuilder<UInt16Type>>::default();
        let cells = [None, None, Some(7), None, Some(9), None];
        for (row, cell) in cells.iter().enumerate() {
            CellBuilder::<Option<u16>>::append(&mut builder, row, cell);
        }
        let column = CellBuilder::<Option<u16>>::finish(&mut builder, cells.len());

        let expected: ArrayRef = Arc::new(arrow_array::UInt16Array::from(cells.to_vec()));
        assert_eq!(&expected, &column);
        let lengths = [3, 3, 2, 0].map(|rows| {
            let empty = CellBuilder::<Option<u16>>::finish(&mut builder, rows);
            (empty.len(), empty.null_count())
        });
        assert_eq!([(3, 3), (3, 3), (2, 2), (0, 0)], lengths);
    }

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
