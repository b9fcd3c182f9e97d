"""Measurements and gates that are not part of the product's own calls."""
