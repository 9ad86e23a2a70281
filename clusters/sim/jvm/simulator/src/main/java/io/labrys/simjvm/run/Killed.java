package io.labrys.simjvm.run;

/**
 * Unwinds the stack of a thread whose process was killed.
 *
 * <p>The weaver lets every handler that would catch it throw it again at once, so that no code of the process runs after a kill.
 */
public final class Killed extends Error {
    private static final long serialVersionUID = 1;

    Killed() {
        super("the process was killed", null, false, false);
    }
}
