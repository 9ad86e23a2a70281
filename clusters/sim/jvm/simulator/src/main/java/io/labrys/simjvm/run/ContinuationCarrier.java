package io.labrys.simjvm.run;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * A continuation that carries a simulated thread. All of them run on the driver's platform thread.
 *
 * <p>{@code jdk.internal.vm.Continuation} is what virtual threads rest on. It is there from JDK 21 on, and is not part of the
 * public API, so this class finds it by its name. A continuation cannot wait while the initializer of a class or other native code
 * is on its stack; the guard then ends the run.
 */
final class ContinuationCarrier extends Carrier {
    private final Continuations all;
    private final Object continuation;
    private final SimThread carried;
    private ClassLoader loader;

    private ContinuationCarrier(Continuations all, SimThread carried) {
        this.all = all;
        this.carried = carried;
        this.continuation = Api.continuation(carried::live);
    }

    /** Returns whether continuations carry the threads: the JVM was started with {@code -Dsimjvm.continuations=true}. */
    static boolean areUsed() {
        return Boolean.getBoolean("simjvm.continuations");
    }

    /** Makes continuations. */
    static final class Continuations implements Maker {
        private final Thread driver = Thread.currentThread();
        private ContinuationCarrier next;

        @Override
        public Carrier carrier(SimThread thread) {
            return new ContinuationCarrier(this, thread);
        }

        @Override
        public void resumeDriver() {
            // the loop below ends when no thread is next
        }

        @Override
        public void awaitDriversTurn() {
            while (next != null) {
                ContinuationCarrier running = next;
                next = null;
                if (driver.getContextClassLoader() != running.loader) {
                    driver.setContextClassLoader(running.loader);
                }
                Api.run(running.continuation);
            }
        }
    }

    /** The class of the JDK. */
    private static final class Api {
        private static final MethodHandle MAKE;
        private static final MethodHandle RUN;
        private static final MethodHandle YIELD;
        private static final Object SCOPE;

        static {
            try {
                MethodHandles.Lookup lookup = MethodHandles.lookup();
                Class<?> scope = Class.forName("jdk.internal.vm.ContinuationScope");
                Class<?> type = Class.forName("jdk.internal.vm.Continuation");
                SCOPE = lookup.findConstructor(scope, MethodType.methodType(void.class, String.class)).invoke("simjvm");
                MAKE = lookup.findConstructor(type, MethodType.methodType(void.class, scope, Runnable.class)).bindTo(SCOPE)
                    .asType(MethodType.methodType(Object.class, Runnable.class));
                RUN = lookup.findVirtual(type, "run", MethodType.methodType(void.class))
                    .asType(MethodType.methodType(void.class, Object.class));
                YIELD = lookup.findStatic(type, "yield", MethodType.methodType(boolean.class, scope)).bindTo(SCOPE);
            } catch (Throwable e) { // a handle can throw anything
                throw new ExceptionInInitializerError(e);
            }
        }

        static Object continuation(Runnable body) {
            try {
                return (Object) MAKE.invokeExact(body);
            } catch (Throwable e) {
                throw new IllegalStateException(e);
            }
        }

        static void run(Object continuation) {
            try {
                RUN.invokeExact(continuation);
            } catch (Throwable e) {
                throw new IllegalStateException(e);
            }
        }

        static void pause() {
            try {
                boolean resumed = (boolean) YIELD.invokeExact();
            } catch (IllegalStateException pinned) {
                throw Scheduler.get().guard().broken("a thread waits where a continuation cannot: " + pinned.getMessage());
            } catch (Throwable e) {
                throw new IllegalStateException(e);
            }
        }
    }

    @Override
    void begin() {
        // the first turn begins it
    }

    @Override
    void resume() {
        all.next = this;
    }

    @Override
    void awaitTurn() {
        Api.pause();
    }

    @Override
    boolean isHere() {
        return Thread.currentThread() == all.driver;
    }

    @Override
    boolean drop() {
        return true;
    }

    @Override
    void setContextClassLoader(ClassLoader changed) {
        loader = changed;
        if (Scheduler.get().currentOrNull() == carried) {
            all.driver.setContextClassLoader(changed);
        }
    }
}
