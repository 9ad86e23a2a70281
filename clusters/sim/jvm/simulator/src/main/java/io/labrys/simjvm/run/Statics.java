package io.labrys.simjvm.run;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * The static fields of the classes of the processes. Each run begins with static fields as in a new JVM.
 *
 * <p>The weaver adds the method {@value #RESET} to each class whose static fields can change. It sets them to zero and carries out
 * the initializer of the class again. A class notes here the end of its first initializer. Before the next run, the classes are reset
 * in this order, so a class finds the classes that its initializer uses as they are in a new JVM.
 *
 * <p>In a new JVM, the initializers run during the run, when a class is first used. So nothing that an initializer does may depend on
 * its time: it draws from the seed of the run and the name of its class, it finds the time of the beginning, and nobody sees what it
 * logs. It cannot make a thread.
 */
public final class Statics {
    /** The name of the added method. */
    public static final String RESET = "labrys$reset";
    private static final Map<String, MethodHandle> INITIALIZED = new LinkedHashMap<>();

    private Statics() {}

    /** An initializer that runs now. */
    static final class Initializer {
        private final String type;
        private Random random;

        Initializer(String type) {
            this.type = type;
        }

        /** Returns a random number from the seed of the run and the name of the class. */
        long draw() {
            if (random == null) {
                random = new Random(Scheduler.get().seed() * 31 + type.hashCode());
            }
            return random.nextLong();
        }

        @Override
        public String toString() {
            return type;
        }
    }

    /** Notes that the initializer of a class has ended. */
    static void add(String type) {
        INITIALIZED.putIfAbsent(type, null);
    }

    /** Returns whether a class has been initialized, and so whether an earlier run can have changed a field. */
    public static boolean any() {
        return !INITIALIZED.isEmpty();
    }

    /** Resets the fields of all classes. A thread of the simulation calls this. */
    public static void reset(ClassLoader loader) throws Throwable {
        for (String type : List.copyOf(INITIALIZED.keySet())) {
            MethodHandle reset = INITIALIZED.get(type);
            if (reset == null) {
                Class<?> found = Class.forName(type, true, loader);
                reset = MethodHandles.privateLookupIn(found, MethodHandles.lookup())
                    .findStatic(found, RESET, MethodType.methodType(void.class));
                INITIALIZED.put(type, reset);
            }
            reset.invokeExact();
        }
    }
}
