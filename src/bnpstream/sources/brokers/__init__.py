"""Message brokers: records in, answers out; drivers are imported only when used."""
