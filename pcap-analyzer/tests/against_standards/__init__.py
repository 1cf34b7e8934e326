"""Messages built by the standards, and what the tool says of them."""
