//! Classes and Arrow streams of pcapstat-core for Python; no logic lives here.
