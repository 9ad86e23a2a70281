import java.util.logging.Logger;

/** A loop without a wait: it takes no virtual time, and so never ends. */
public final class Endless {
    private static final Logger LOG = Logger.getLogger("endless");

    private Endless() {}

    public static void main(String[] arguments) {
        while (true) {
            LOG.info("again ".repeat(10_000));
        }
    }
}
