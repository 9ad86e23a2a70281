package io.labrys.simjvm.run;

import java.util.concurrent.locks.LockSupport;

/** A platform thread that carries a simulated thread. */
final class PlatformCarrier extends Carrier {
    private static final long STACK_BYTES = 256 * 1024;

    private final Turn turn = new Turn();
    private final Thread thread;

    private PlatformCarrier(SimThread carried) {
        thread = new Thread(null, () -> {
            turn.await();
            carried.live();
        }, carried.process.name() + "/" + carried.getName(), STACK_BYTES);
        thread.setDaemon(true);
    }

    /** Makes platform threads. */
    static final class Platform implements Maker {
        private final Turn driversTurn = new Turn();

        @Override
        public Carrier carrier(SimThread thread) {
            return new PlatformCarrier(thread);
        }

        @Override
        public void resumeDriver() {
            driversTurn.grant();
        }

        @Override
        public void awaitDriversTurn() {
            driversTurn.await();
        }
    }

    /** The right of one platform thread to run. */
    private static final class Turn {
        private volatile boolean granted;
        private volatile Thread owner;

        /** Waits until another thread grants it. The owner calls this. */
        void await() {
            owner = Thread.currentThread();
            while (!granted) {
                LockSupport.park(this);
            }
            granted = false;
        }

        /** Grants it. */
        void grant() {
            granted = true;
            Thread waiting = owner;
            if (waiting != null) {
                LockSupport.unpark(waiting);
            }
        }
    }

    @Override
    void begin() {
        thread.start();
    }

    @Override
    void resume() {
        turn.grant();
    }

    @Override
    void awaitTurn() {
        turn.await();
    }

    @Override
    boolean isHere() {
        return Thread.currentThread() == thread;
    }

    @Override
    boolean drop() {
        return false;
    }

    @Override
    void setContextClassLoader(ClassLoader loader) {
        thread.setContextClassLoader(loader);
    }
}
