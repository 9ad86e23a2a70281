package io.labrys.dledger.read;

import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;

/**
 * The result of a read.
 *
 * @param code SUCCESS, or why there is no value
 * @param value the register's value; null if there is no such register, or if the read failed
 */
public record Reading(DLedgerResponseCode code, Long value) {

    /** Returns the reading of a register with this value; null means that there is no such register. */
    public static Reading of(Long value) {
        return new Reading(DLedgerResponseCode.SUCCESS, value);
    }

    /** Returns a failed reading. */
    public static Reading failed(DLedgerResponseCode code) {
        return new Reading(code, null);
    }
}
