"""Files as a source: bytes, compression, format detection."""
