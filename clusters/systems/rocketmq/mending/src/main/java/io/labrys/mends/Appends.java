package io.labrys.mends;

import io.openmessaging.storage.dledger.MemberState;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** What the mended controller calls; a jar with this mend has this class. */
public final class Appends {
    private Appends() {}

    /**
     * Waits for the answer to an append, as long as the member leads in the term of the entry.
     *
     * @return the answer
     * @throws TimeoutException if the member does not lead in this term at the end of one of the times
     */
    public static Object answer(Future<?> answer, long time, TimeUnit unit, MemberState state)
        throws InterruptedException, ExecutionException, TimeoutException {
        long term = state.currTerm();
        while (true) {
            try {
                return answer.get(time, unit);
            } catch (TimeoutException late) {
                if (!state.isLeader() || state.currTerm() != term) {
                    throw late;
                }
            }
        }
    }
}
