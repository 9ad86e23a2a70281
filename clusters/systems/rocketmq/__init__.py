"""RocketMQ: its controllers as a system under test, and their client."""
