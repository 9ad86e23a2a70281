import java.lang.management.ManagementFactory;
import java.time.Clock;
import java.time.InstantSource;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Calendar;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TimeZone;
import java.util.logging.Logger;

/** Says what the JDK knows of time, of the process and of its memory, and what it draws. */
public final class Chance {
    private static final Logger LOG = Logger.getLogger("chance");
    private static final Clock CLOCK = Clock.systemUTC();

    private Chance() {}

    public static void main(String[] arguments) throws InterruptedException {
        Thread.sleep(61_250);
        say(CLOCK.millis() + " " + Clock.systemDefaultZone().instant() + " " + Clock.system(ZoneOffset.MAX).millis());
        say(Clock.tickMillis(ZoneOffset.UTC).millis() + " " + Clock.tickSeconds(ZoneOffset.UTC).instant() + " "
            + Clock.tickMinutes(ZoneOffset.UTC).instant());
        InstantSource source = InstantSource.system();
        say(source.millis() + " " + Calendar.getInstance().getTimeInMillis() + " "
            + Calendar.getInstance(TimeZone.getTimeZone("UTC")).getTime().getTime());
        say(ManagementFactory.getRuntimeMXBean().getName() + " " + ProcessHandle.current().pid() + " "
            + ManagementFactory.getRuntimeMXBean().getStartTime());
        say(Runtime.getRuntime().totalMemory() + " " + Runtime.getRuntime().freeMemory());
        List<Integer> numbers = new ArrayList<>(List.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        Collections.shuffle(numbers);
        say("drawn " + numbers + " " + new SplittableRandom().nextLong());
        for (int i = 0; i < 2_000; i++) { // the compiler has seen the code by then
            Set.of(i, i + 1, i + 2, i + 3).toString();
        }
        say("in order " + Set.of("a", "b") + Set.of("a", "b", "c", "d", "e", "f") + Set.copyOf(numbers) + Map.of("x", 1, "y", 2, "z", 3));
    }

    private static void say(String text) {
        LOG.info("calls: " + text);
    }
}
