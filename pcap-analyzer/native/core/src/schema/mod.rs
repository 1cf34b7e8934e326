//! Declares every table's columns once, with type, unit and doc text, and derives the row structs and Arrow builders from that.

use std::collections::HashMap;

mod cell;
mod tables;
mod words;

pub use cell::{push_hex, Cell, CellBuilder, Text, Value};
pub use tables::{captures, directions, exchanges, kinds, messages, notes, sessions, timings};

/// A column as it is declared: what `pcapstat schema` prints and the docs show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Name, the same in Rust, Arrow, Python and the output formats.
    pub name: &'static str,
    /// Arrow type in words: "int64", "uint32", "utf8", "bool", "binary", "list<uint64>", "float64".
    pub data_type: &'static str,
    /// Unit ("ns", "bytes"), empty where it has none.
    pub unit: &'static str,
    /// What it is, with the section of the standard.
    pub doc: &'static str,
}

impl Column {
    /// Unit and doc as metadata of an Arrow field.
    fn metadata(&self) -> HashMap<String, String> {
        [("unit", self.unit), ("doc", self.doc.trim())].into_iter().map(|(key, text)| (key.to_owned(), text.to_owned())).collect()
    }
}

/// A table as it is declared.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// What one row is.
    pub doc: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
}

/// All tables.
pub const TABLES: &[Table] =
    &[messages::TABLE, exchanges::TABLE, sessions::TABLE, directions::TABLE, kinds::TABLE, timings::TABLE, notes::TABLE, captures::TABLE];

/// Declares a table: the row struct, its Arrow builder and its documentation from one list.
macro_rules! table {
    ($(#[doc = $table_doc:literal])* $table:ident { $($(#[doc = $doc:literal])* $column:ident: $kind:ty [$unit:literal],)* }) => {
        $(#[doc = $table_doc])*
        pub mod $table {
            #[allow(unused_imports)]
            use crate::packet::Address;
            #[allow(unused_imports)]
            use crate::schema::cell::Text;
            use crate::schema::cell::{Cell, CellBuilder, Value};
            use crate::schema::{Column, Table};
            use arrow_array::RecordBatch;
            use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
            use std::sync::Arc;

            /// The table's declaration.
            pub const TABLE: Table = Table { name: stringify!($table), doc: concat!($($table_doc, "\n"),*), columns: COLUMNS };

            const COLUMNS: &[Column] = &[$(Column {
                name: stringify!($column),
                data_type: <$kind as Cell>::NAME,
                unit: $unit,
                doc: concat!($($doc, "\n"),*),
            }),*];

            /// One row.
            #[derive(Debug, Clone, Default, PartialEq)]
            pub struct Row { $($(#[doc = $doc])* pub $column: $kind,)* }

            impl Row {
                /// Makes every cell empty (texts keep their memory).
                #[inline]
                pub fn clear(&mut self) { $(self.$column.reset();)* }

                /// Column names with the row's values, in order.
                #[must_use]
                pub fn values(&self) -> Vec<(&'static str, Value)> { vec![$((stringify!($column), self.$column.value())),*] }
            }

            /// Gathers rows into Arrow batches.
            #[derive(Debug, Default)]
            pub struct Builder { rows: usize, $($column: <$kind as Cell>::Builder,)* }

            impl Builder {
                /// The Arrow schema, with unit and doc as field metadata.
                #[must_use]
                pub fn schema() -> SchemaRef {
                    let fields = vec![$(<<$kind as Cell>::Builder as CellBuilder<$kind>>::field(stringify!($column))),*];
                    let described: Vec<Field> = fields.into_iter().zip(COLUMNS).map(|(field, column)| {
                        field.with_metadata(column.metadata())
                    }).collect();
                    Arc::new(Schema::new(described))
                }

                /// Adds a row.
                pub fn append(&mut self, row: &Row) {
                    $(CellBuilder::<$kind>::append(&mut self.$column, self.rows, &row.$column);)*
                    self.rows += 1;
                }

                /// Rows since the last batch.
                #[must_use]
                pub const fn len(&self) -> usize { self.rows }

                /// Whether there is no row since the last batch.
                #[must_use]
                pub const fn is_empty(&self) -> bool { self.rows == 0 }

                /// The rows since the last batch as a batch.
                ///
                /// # Errors
                /// None in practice: the columns have the schema's types and equal lengths.
                pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
                    let rows = std::mem::take(&mut self.rows);
                    RecordBatch::try_new(Self::schema(), vec![$(CellBuilder::<$kind>::finish(&mut self.$column, rows)),*])
                }
            }
        }
    };
}
pub(crate) use table;
