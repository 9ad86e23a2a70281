package io.labrys.mends;

import io.openmessaging.storage.dledger.MemberState;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import io.openmessaging.storage.dledger.protocol.PushEntryRequest;
import io.openmessaging.storage.dledger.utils.PreConditions;

/** What the mended handler of requests calls; a jar with this mend has this class. */
public final class Requests {
    private Requests() {}

    /**
     * Checks that a request is one of the current term.
     *
     * @throws io.openmessaging.storage.dledger.exception.DLedgerException if it has another term
     */
    public static void checkTerm(PushEntryRequest request, MemberState state) {
        PreConditions.check(request.getTerm() == state.currTerm(), DLedgerResponseCode.INCONSISTENT_TERM, null);
    }
}
