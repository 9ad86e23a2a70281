package io.labrys.mends;

import io.openmessaging.storage.dledger.MemberState;

/** What the mended elector calls; a jar with this mend has this class. */
public final class Elections {
    private Elections() {}

    /** Returns whether a node has voted for itself in its term, so that an earlier process of it can have led in this term. */
    public static boolean mayHaveLed(MemberState state) {
        return state.getSelfId().equals(state.currVoteFor());
    }
}
