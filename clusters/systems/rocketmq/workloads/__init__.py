"""RocketMQ's controller: broker ids, masters and sync sets of broker groups, checked by a model of the whole group."""
