//! The core of pcapstat: captures in, tables out. Rooms from the ground up; each uses only those above it in this list.

pub mod error;
pub mod note;

pub mod arena;
pub mod bytes;
pub mod few;
pub mod layer;
pub mod packet;
pub mod share;

pub mod capture;
pub mod link;
pub mod network;
pub mod transport_headers;

pub mod envelope;

pub mod schema;

pub mod security;

pub mod exchanges;
pub mod message;
pub mod pdml;
pub mod pipeline;
pub mod protocols;
pub mod sessions;
pub mod span;
pub mod transport;
