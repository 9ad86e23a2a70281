package io.labrys.simjvm.run;

import java.util.Random;

/** {@link java.util.concurrent.ThreadLocalRandom} for simulated threads: the random numbers of the process. */
public final class SimRandom extends Random {
    private static final long serialVersionUID = 1;

    private SimRandom(long seed) {
        super(seed);
    }

    /** Returns the random numbers of the running process. */
    public static SimRandom current() {
        if (Scheduler.get().current().initializes()) {
            return new SimRandom(Hooks.seed());
        }
        return SimProcess.current().local(SimRandom.class, () -> new SimRandom(Hooks.seed()));
    }
}
