package io.labrys.dledger.state;

/**
 * The state machine's result of one write. Only the state machine decides whether a cas takes effect.
 *
 * @param applied whether the register was set
 * @param value the register's value after the write; null if there is no such register
 * @param index the log index of the write
 */
public record Answer(boolean applied, Long value, long index) {}
