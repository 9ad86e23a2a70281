package io.labrys.simjvm.run;

/**
 * What carries the stack of a simulated thread while it waits: a platform thread, or a continuation of the JDK.
 *
 * <p>Both give the same runs. A change of threads costs less with continuations: with platform threads, the operating system wakes
 * another thread each time.
 */
abstract class Carrier {
    /** Begins the life of the thread. It waits for its first turn. */
    abstract void begin();

    /** Lets the thread go on as soon as the one that runs now waits for its turn, or ends. */
    abstract void resume();

    /** Waits for the next turn; the thread itself calls this. */
    abstract void awaitTurn();

    /** Returns whether the caller runs on the stack of the thread, if the thread holds the baton. */
    abstract boolean isHere();

    /** Forgets the stack of the thread. Returns false if it has to be unwound instead. */
    abstract boolean drop();

    /** Changes the class loader that libraries take for that of the thread. */
    abstract void setContextClassLoader(ClassLoader loader);

    /** Makes carriers, and lets the driver wait for the end of their turns. */
    interface Maker {
        /** Makes the carrier of a thread. */
        Carrier carrier(SimThread thread);

        /** Lets the driver go on as soon as the running thread waits for its turn, or ends. */
        void resumeDriver();

        /** Waits until a thread gives the baton back to the driver. The driver calls this. */
        void awaitDriversTurn();
    }

    /** The thread of the driver, while it reads the objects of a process. */
    static final class OfDriver extends Carrier {
        private final Thread driver;

        OfDriver(Thread driver) {
            this.driver = driver;
        }

        @Override
        void begin() {
            throw new IllegalStateException("it runs already");
        }

        @Override
        void resume() {
            throw new IllegalStateException("it never waits");
        }

        @Override
        void awaitTurn() {
            throw new IllegalStateException("it never waits");
        }

        @Override
        boolean isHere() {
            return Thread.currentThread() == driver;
        }

        @Override
        boolean drop() {
            throw new IllegalStateException("it belongs to no process");
        }

        @Override
        void setContextClassLoader(ClassLoader loader) {
            throw new IllegalStateException("it only reads");
        }
    }
}
