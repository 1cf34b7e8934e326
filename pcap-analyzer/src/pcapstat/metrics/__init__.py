"""From sums to figures: pure functions that divide, name units, and say n/a (None) where there is nothing to divide by."""
