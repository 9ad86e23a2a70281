package io.labrys.mends;

import java.util.List;

/** The mends of a program. A jar names its class in {@code META-INF/services/io.labrys.mends.Mends}. */
public interface Mends {
    /** Returns all of them. */
    List<Mend> all();
}
