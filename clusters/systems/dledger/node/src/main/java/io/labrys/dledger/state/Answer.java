package io.labrys.dledger.state;

/**
 * What the state machine says about one write: it alone decides whether a cas took effect.
 *
 * @param applied whether the register was set
 * @param value what the register holds after the write; null if there is no such register
 * @param index the log index of the write
 */
public record Answer(boolean applied, Long value, long index) {}
