"""Summed sufficient statistics: tables, pairs of doubles, decay."""
