import java.util.logging.Logger;

/** One thread logs without a wait, and the other one waits for a second. */
public final class Busy {
    private static final Logger LOG = Logger.getLogger("busy");

    private Busy() {}

    public static void main(String[] arguments) throws InterruptedException {
        Thread busy = new Thread(() -> {
            while (true) {
                LOG.info("again");
            }
        });
        busy.setDaemon(true);
        busy.start();
        Thread.sleep(1_000);
        LOG.info("calls: a second has passed");
    }
}
