package io.labrys.mends;

import io.openmessaging.storage.dledger.MemberState;
import io.openmessaging.storage.dledger.protocol.VoteRequest;
import io.openmessaging.storage.dledger.protocol.VoteResponse;
import io.openmessaging.storage.dledger.utils.DLedgerUtils;

/** What the mended elector calls; a jar with this mend has this class. */
public final class Elections {
    private static final long AFTER_FAILURE_MILLIS = 100;

    private Elections() {}

    /** Returns whether a node has voted for itself in its term, so that an earlier process of it can have led in this term. */
    public static boolean mayHaveLed(MemberState state) {
        return state.getSelfId().equals(state.currVoteFor());
    }

    /** Returns the answer to a request for a vote; a node that could not store this vote has another one, or none. */
    public static VoteResponse.RESULT answer(MemberState state, VoteRequest request) {
        boolean voted = request.getLeaderId().equals(state.currVoteFor());
        return voted ? VoteResponse.RESULT.ACCEPT : VoteResponse.RESULT.REJECT_ALREADY_VOTED;
    }

    /** Waits before a node tries again what failed. */
    public static void waitAfterFailure() {
        DLedgerUtils.sleep(AFTER_FAILURE_MILLIS);
    }
}
