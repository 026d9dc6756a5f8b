"""Message brokers: records in, answers out; nothing of a driver is imported before it is used."""
