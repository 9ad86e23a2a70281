package io.labrys.simjvm.run;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;

/** Where buffers are in the memory. A slice of a mapped file has no other link to the file. */
final class Addresses {
    private static final MethodHandle ADDRESS = address();

    private Addresses() {}

    /** Returns the address of the first byte of a direct buffer, which a mapped one is. */
    static long of(ByteBuffer buffer) {
        try {
            return (long) ADDRESS.invokeExact(buffer);
        } catch (Throwable e) { // a handle can throw anything
            throw new IllegalStateException(e);
        }
    }

    /** Returns a method that the compiler does not know, because its package is exported at run time only. */
    private static MethodHandle address() {
        try {
            return MethodHandles.lookup()
                .findVirtual(Class.forName("sun.nio.ch.DirectBuffer"), "address", MethodType.methodType(long.class))
                .asType(MethodType.methodType(long.class, ByteBuffer.class));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("this JVM has no sun.nio.ch.DirectBuffer.address", e);
        }
    }
}
