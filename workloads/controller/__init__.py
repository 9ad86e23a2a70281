"""RocketMQ's controller: broker ids, masters and sync sets of broker groups, judged by a model of the whole group."""
